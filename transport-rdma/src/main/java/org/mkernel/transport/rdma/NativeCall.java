package org.mkernel.transport.rdma;

import java.nio.file.Path;
import org.mkernel.api.DeviceException;
import org.mkernel.api.Failure;

/** Turns results of libibverbs into exceptions that say what to do. */
final class NativeCall {
  static final int ENOMEM = 12;
  private static final int EPERM = 1;
  private static final int EACCES = 13;
  private static final int EFAULT = 14;
  private static final int ENODEV = 19;
  private static final int EINVAL = 22;
  private static final int ETIMEDOUT = 110;
  private static final int EHOSTUNREACH = 113;
  private static final int ENETUNREACH = 101;

  private NativeCall() {}

  /**
   * Gives the result back when it is none of an error.
   *
   * @param result a handle or count, or {@code -errno}
   * @param what was attempted, for the message
   */
  static long check(long result, String what) {
    if (result < 0) {
      throw failed(what, (int) -result, Verbs.error((int) -result));
    }
    return result;
  }

  static DeviceException failed(String what, int error, String text) {
    return new DeviceException(
        "%s failed: %s (errno %d)%s".formatted(what, text, error, limit(error)),
        Failure.remedy(remedy(error)).withNativeCode(error));
  }

  private static String limit(int error) {
    return error == ENOMEM ? "; there is " + MemoryLimit.of(Path.of("/proc")) : "";
  }

  private static String remedy(int error) {
    return switch (error) {
      case ENOMEM -> MemoryLimit.REMEDY;
      case EPERM, EACCES -> "run with the right to open /dev/infiniband";
      case EFAULT -> "memory of a GPU needs the kernel module nvidia-peermem";
      case ENODEV -> "look whether the adapter is still there: ibv_devinfo";
      case EINVAL -> "compare the options rdma.* with what ibv_devinfo -v shows";
      case ETIMEDOUT, EHOSTUNREACH, ENETUNREACH ->
          "the peer's RDMA address can't be reached: look at routes, VLANs and rdma.gid-index";
      default -> "look for adapter errors in the kernel's log";
    };
  }
}
