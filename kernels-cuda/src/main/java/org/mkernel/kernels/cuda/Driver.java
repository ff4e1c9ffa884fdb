package org.mkernel.kernels.cuda;

import java.lang.foreign.Arena;
import java.lang.foreign.SymbolLookup;
import java.util.Optional;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.PointerPointer;
import org.mkernel.api.Availability;
import org.mkernel.api.DeviceException;
import org.mkernel.api.Failure;

/** The driver's API: whether it is there, and what its codes mean. */
final class Driver {
  /** The oldest driver that runs what this version is built for: CUDA 13.0. */
  static final int OLDEST = 13000;

  private static final String LIBRARY = "libcuda.so.1";

  private Driver() {}

  /**
   * Loads the driver and initialises it, the first time.
   *
   * @return the driver's version in words, or why there is none
   */
  static Availability availability() {
    return Library.AVAILABILITY;
  }

  /**
   * Checks what a call of the driver gave.
   *
   * @param code its result
   * @param call its name
   * @throws DeviceException when it is not success
   */
  static void check(int code, String call) {
    if (code != cudart.CUDA_SUCCESS) {
      throw failure(code, call);
    }
  }

  /** The failure of a call, with its code, the code's name and what helps. */
  static DeviceException failure(int code, String call) {
    return new DeviceException(
        "%s failed: %s (%d), %s".formatted(call, name(code), code, text(code)),
        Failure.remedy(remedy(code)).withNativeCode(code));
  }

  /** The name of a code, as {@code CUDA_ERROR_OUT_OF_MEMORY}. */
  static String name(int code) {
    try (PointerPointer<BytePointer> name = new PointerPointer<>(1)) {
      return cudart.cuGetErrorName(code, name) == cudart.CUDA_SUCCESS
          ? name.get(BytePointer.class).getString()
          : "an unknown error";
    }
  }

  private static String text(int code) {
    try (PointerPointer<BytePointer> text = new PointerPointer<>(1)) {
      return cudart.cuGetErrorString(code, text) == cudart.CUDA_SUCCESS
          ? text.get(BytePointer.class).getString()
          : "of which the driver says nothing";
    }
  }

  private static String remedy(int code) {
    return switch (code) {
      case cudart.CUDA_ERROR_OUT_OF_MEMORY ->
          "use smaller tensors or fewer ranks, or end other programs that use this GPU"
              + " (nvidia-smi)";
      case cudart.CUDA_ERROR_NO_DEVICE ->
          "look whether nvidia-smi lists a GPU, and whether CUDA_VISIBLE_DEVICES hides it";
      case cudart.CUDA_ERROR_NO_BINARY_FOR_GPU, cudart.CUDA_ERROR_UNSUPPORTED_PTX_VERSION ->
          "run on a GPU of the architecture that the kernels were compiled for";
      case cudart.CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE ->
          "ask for fewer lanes: all of them must be resident at once";
      case cudart.CUDA_ERROR_ILLEGAL_ADDRESS,
          cudart.CUDA_ERROR_LAUNCH_FAILED,
          cudart.CUDA_ERROR_MISALIGNED_ADDRESS,
          cudart.CUDA_ERROR_ILLEGAL_INSTRUCTION,
          cudart.CUDA_ERROR_HARDWARE_STACK_ERROR ->
          "restart the process: the context is lost; compute-sanitizer names the access";
      case cudart.CUDA_ERROR_ECC_UNCORRECTABLE ->
          "reset the GPU: its memory reports an uncorrectable error (nvidia-smi -q -d ECC)";
      case cudart.CUDA_ERROR_SYSTEM_DRIVER_MISMATCH ->
          "reboot, or install the user-mode driver that fits the kernel module";
      case cudart.CUDA_ERROR_SYSTEM_NOT_READY -> "start nvidia-fabricmanager on this node";
      case cudart.CUDA_ERROR_DEVICE_UNAVAILABLE ->
          "end the program that holds the GPU exclusively (nvidia-smi -q -d COMPUTE)";
      default -> "look the code up in the CUDA driver's documentation; dmesg may say more (Xid)";
    };
  }

  /** The version in words: 13010 is 13.1. */
  static String version(int version) {
    return version / 1000 + "." + version % 1000 / 10;
  }

  /** Loads the library once; what went wrong is kept as a value, with the root cause. */
  private static final class Library {
    static final Availability AVAILABILITY = load();

    private Library() {}

    private static Availability load() {
      Optional<Availability> missing = lookUp();
      if (missing.isPresent()) {
        return missing.get();
      }
      try {
        int code = cudart.cuInit(0);
        if (code != cudart.CUDA_SUCCESS) {
          return new Availability.Unavailable(
              "cuInit failed: %s (%d)".formatted(name(code), code), remedy(code));
        }
        int[] version = new int[1];
        check(cudart.cuDriverGetVersion(version), "cuDriverGetVersion");
        if (version[0] < OLDEST) {
          return new Availability.Unavailable(
              "the driver supports CUDA up to %s; %s is needed"
                  .formatted(version(version[0]), version(OLDEST)),
              "install NVIDIA driver 580 or newer");
        }
        return new Availability.Available("CUDA driver " + version(version[0]));
      } catch (LinkageError | RuntimeException e) {
        return new Availability.Unavailable(
            "the CUDA bindings can't be loaded: " + RootCause.of(e),
            "put mkernel-natives-linux-x86_64 on the module path or class path, and grant native"
                + " access to org.bytedeco.javacpp and org.bytedeco.cuda");
      }
    }

    /**
     * Looks before anything is loaded: the bindings would end the process at the first call of a
     * function that a stub of the library lacks.
     */
    @SuppressWarnings("restricted")
    private static Optional<Availability> lookUp() {
      try (Arena arena = Arena.ofConfined()) {
        SymbolLookup library = SymbolLookup.libraryLookup(LIBRARY, arena);
        return library.find("cuInit").isPresent()
            ? Optional.empty()
            : Optional.of(
                new Availability.Unavailable(
                    LIBRARY + " is a stub without functions",
                    "install the NVIDIA driver, or take the stub off LD_LIBRARY_PATH"));
      } catch (IllegalArgumentException e) {
        return Optional.of(
            new Availability.Unavailable(
                "there is no NVIDIA driver: %s can't be opened".formatted(LIBRARY),
                "install NVIDIA driver 580 or newer; in a container, start it with the NVIDIA"
                    + " runtime (--gpus all)"));
      } catch (IllegalCallerException e) {
        return Optional.of(
            new Availability.Unavailable(
                "native access is not granted: " + e.getMessage(),
                "start Java with --enable-native-access=org.mkernel.kernels.cuda,"
                    + "org.bytedeco.cuda,org.bytedeco.javacpp"));
      }
    }
  }
}
