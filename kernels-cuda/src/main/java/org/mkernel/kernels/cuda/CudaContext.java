package org.mkernel.kernels.cuda;

import java.nio.charset.StandardCharsets;
import java.util.concurrent.atomic.AtomicBoolean;
import org.bytedeco.cuda.cudart.CUctx_st;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.SizeTPointer;

/**
 * The primary context of a GPU, shared with the caller and with all others that use the GPU in this
 * process. It is current only between {@link #enter} and the end of that scope.
 */
final class CudaContext implements AutoCloseable {
  private final int ordinal;
  private final CUctx_st context;
  private final Scope scope = new Scope();
  private final AtomicBoolean closed = new AtomicBoolean();

  private CudaContext(int ordinal, CUctx_st context) {
    this.ordinal = ordinal;
    this.context = context;
  }

  /**
   * Retains the primary context. Nothing becomes current.
   *
   * @param ordinal the number of the GPU among those that the driver shows
   */
  static CudaContext retain(int ordinal) {
    CUctx_st context = new CUctx_st();
    Driver.check(cudart.cuDevicePrimaryCtxRetain(context, ordinal), "cuDevicePrimaryCtxRetain");
    return new CudaContext(ordinal, context);
  }

  int ordinal() {
    return ordinal;
  }

  /** Makes the context current for this thread until the scope is closed. Allocates nothing. */
  Scope enter() {
    Driver.check(cudart.cuCtxPushCurrent(context), "cuCtxPushCurrent");
    return scope;
  }

  /** An attribute of the GPU, by its number {@code CU_DEVICE_ATTRIBUTE_…}. */
  int attribute(int attribute) {
    return attribute(ordinal, attribute);
  }

  static int attribute(int ordinal, int attribute) {
    int[] value = new int[1];
    Driver.check(cudart.cuDeviceGetAttribute(value, attribute, ordinal), "cuDeviceGetAttribute");
    return value[0];
  }

  /** The name of a GPU, as {@code NVIDIA H200}. */
  static String name(int ordinal) {
    byte[] name = new byte[256];
    Driver.check(cudart.cuDeviceGetName(name, name.length, ordinal), "cuDeviceGetName");
    int length = 0;
    while (length < name.length && name[length] != 0) {
      length++;
    }
    return new String(name, 0, length, StandardCharsets.UTF_8);
  }

  /** Bytes of memory that are free now. */
  long freeBytes() {
    try (Scope _ = enter();
        SizeTPointer free = new SizeTPointer(1);
        SizeTPointer total = new SizeTPointer(1)) {
      Driver.check(cudart.cuMemGetInfo(free, total), "cuMemGetInfo");
      return free.get();
    }
  }

  @Override
  public void close() {
    if (closed.compareAndSet(false, true)) {
      Driver.check(cudart.cuDevicePrimaryCtxRelease(ordinal), "cuDevicePrimaryCtxRelease");
    }
  }

  /** The time in which the context is current. One object serves all threads. */
  static final class Scope implements AutoCloseable {
    private Scope() {}

    /** Makes current what was current before. */
    @Override
    public void close() {
      Driver.check(cudart.cuCtxPopCurrent(null), "cuCtxPopCurrent");
    }
  }
}
