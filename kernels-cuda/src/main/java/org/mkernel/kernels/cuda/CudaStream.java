package org.mkernel.kernels.cuda;

import java.util.concurrent.atomic.AtomicBoolean;
import org.bytedeco.cuda.cudart.CUstream_st;
import org.bytedeco.cuda.global.cudart;

/** A stream of our own, which does not wait for the default stream. */
final class CudaStream implements AutoCloseable {
  private final CudaContext context;
  private final CUstream_st stream = new CUstream_st();
  private final AtomicBoolean closed = new AtomicBoolean();

  CudaStream(CudaContext context) {
    this.context = context;
    try (CudaContext.Scope _ = context.enter()) {
      Driver.check(cudart.cuStreamCreate(stream, cudart.CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    }
  }

  /** The opaque address. */
  long address() {
    return stream.address();
  }

  CUstream_st handle() {
    return stream;
  }

  /** Waits until all that was put into the stream is done. */
  void synchronize() {
    try (CudaContext.Scope _ = context.enter()) {
      Driver.check(cudart.cuStreamSynchronize(stream), "cuStreamSynchronize");
    }
  }

  /** Whether all that was put into the stream is done. Allocates nothing. */
  boolean isIdle() {
    try (CudaContext.Scope _ = context.enter()) {
      int code = cudart.cuStreamQuery(stream);
      if (code == cudart.CUDA_ERROR_NOT_READY) {
        return false;
      }
      Driver.check(code, "cuStreamQuery");
      return true;
    }
  }

  @Override
  public void close() {
    if (closed.compareAndSet(false, true)) {
      try (CudaContext.Scope _ = context.enter()) {
        Driver.check(cudart.cuStreamDestroy(stream), "cuStreamDestroy");
      }
    }
  }
}
