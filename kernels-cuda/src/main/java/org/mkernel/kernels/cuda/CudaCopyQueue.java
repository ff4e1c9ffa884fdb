package org.mkernel.kernels.cuda;

import org.bytedeco.cuda.global.cudart;
import org.mkernel.api.spi.Device;

/**
 * Copies by the copy engines, in a stream of their own: they go on beside a kernel that fills the
 * GPU. All is done in the order in which it was put in. Used by one thread at a time.
 */
final class CudaCopyQueue implements Device.CopyQueue {
  private final CudaContext context;
  private final CudaStream stream;

  CudaCopyQueue(CudaContext context) {
    this.context = context;
    this.stream = new CudaStream(context);
  }

  @Override
  public void copy(long from, long to, long bytes) {
    try (CudaContext.Scope _ = context.enter()) {
      int code = cudart.cuMemcpyAsync(to, from, bytes, stream.handle());
      if (code != cudart.CUDA_SUCCESS) {
        throw Driver.failure(
            code, "cuMemcpyAsync of %d bytes from 0x%x to 0x%x".formatted(bytes, from, to));
      }
    }
  }

  @Override
  public void store(long address, long value) {
    try (CudaContext.Scope _ = context.enter()) {
      int code =
          cudart.cuStreamWriteValue64(
              stream.handle(), address, value, cudart.CU_STREAM_WRITE_VALUE_DEFAULT);
      if (code != cudart.CUDA_SUCCESS) {
        throw Driver.failure(code, "cuStreamWriteValue64 to 0x%x".formatted(address));
      }
    }
  }

  @Override
  public boolean isIdle() {
    return stream.isIdle();
  }

  @Override
  public void close() {
    try (stream) {
      stream.synchronize();
    }
  }
}
