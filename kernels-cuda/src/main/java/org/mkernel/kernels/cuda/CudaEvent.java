package org.mkernel.kernels.cuda;

import java.util.concurrent.atomic.AtomicBoolean;
import org.bytedeco.cuda.cudart.CUevent_st;
import org.bytedeco.cuda.global.cudart;

/** A point in a stream, with the device's time. Used by one thread at a time. */
final class CudaEvent implements AutoCloseable {
  private final CudaContext context;
  private final CUevent_st event = new CUevent_st();
  private final StreamHandle stream = new StreamHandle();
  private final AtomicBoolean closed = new AtomicBoolean();

  CudaEvent(CudaContext context) {
    this.context = context;
    try (CudaContext.Scope _ = context.enter()) {
      Driver.check(cudart.cuEventCreate(event, cudart.CU_EVENT_DEFAULT), "cuEventCreate");
    }
  }

  /** Marks the end of what is in a stream now. Allocates nothing. */
  void record(long streamAddress) {
    try (CudaContext.Scope _ = context.enter()) {
      Driver.check(cudart.cuEventRecord(event, stream.at(streamAddress)), "cuEventRecord");
    }
  }

  /** Whether it has come to pass; true also when it was never recorded. */
  boolean isDone() {
    int code = cudart.cuEventQuery(event);
    if (code == cudart.CUDA_ERROR_NOT_READY) {
      return false;
    }
    Driver.check(code, "cuEventQuery");
    return true;
  }

  /** Waits until it has come to pass. */
  void synchronize() {
    Driver.check(cudart.cuEventSynchronize(event), "cuEventSynchronize");
  }

  /** Nanoseconds from another event to this one; both have come to pass. Resolution 0.5 µs. */
  long nanosSince(CudaEvent start) {
    float[] millis = new float[1];
    Driver.check(cudart.cuEventElapsedTime(millis, start.event, event), "cuEventElapsedTime");
    return Math.round(millis[0] * 1e6);
  }

  @Override
  public void close() {
    if (closed.compareAndSet(false, true)) {
      Driver.check(cudart.cuEventDestroy(event), "cuEventDestroy");
    }
  }
}
