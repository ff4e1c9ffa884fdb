package org.mkernel.kernels.cuda;

import java.util.concurrent.atomic.AtomicBoolean;
import org.bytedeco.cuda.global.cudart;
import org.mkernel.api.spi.Device;

/** Memory of a GPU. */
final class CudaMemory implements Device.Memory {
  /** What the driver aligns to by itself. */
  private static final long ALIGNED = 256;

  private final CudaContext context;
  private final long allocation;
  private final long address;
  private final long bytes;
  private final AtomicBoolean closed = new AtomicBoolean();

  private CudaMemory(CudaContext context, long allocation, long address, long bytes) {
    this.context = context;
    this.allocation = allocation;
    this.address = address;
    this.bytes = bytes;
  }

  /** Allocates zeroed memory; the stream is used for that, and is waited for. */
  static CudaMemory allocate(CudaContext context, CudaStream stream, long bytes, long alignment) {
    if (bytes == 0) {
      return new CudaMemory(context, 0, 0, 0);
    }
    long size = alignment <= ALIGNED ? bytes : Math.addExact(bytes, alignment);
    long[] allocated = new long[1];
    try (CudaContext.Scope _ = context.enter()) {
      int code = cudart.cuMemAlloc(allocated, size);
      if (code != cudart.CUDA_SUCCESS) {
        throw Driver.failure(
            code,
            "cuMemAlloc of %d bytes, while %d are free,".formatted(size, context.freeBytes()));
      }
    }
    CudaMemory memory =
        new CudaMemory(context, allocated[0], (allocated[0] + alignment - 1) & -alignment, bytes);
    boolean zeroed = false;
    try {
      memory.zero(stream);
      zeroed = true;
      return memory;
    } finally {
      if (!zeroed) {
        memory.close();
      }
    }
  }

  private void zero(CudaStream stream) {
    try (CudaContext.Scope _ = context.enter()) {
      Driver.check(
          cudart.cuMemsetD8Async(address, (byte) 0, bytes, stream.handle()), "cuMemsetD8Async");
    }
    stream.synchronize();
  }

  @Override
  public long address() {
    return address;
  }

  @Override
  public long bytes() {
    return bytes;
  }

  @Override
  public void close() {
    if (closed.compareAndSet(false, true) && allocation != 0) {
      try (CudaContext.Scope _ = context.enter()) {
        Driver.check(cudart.cuMemFree(allocation), "cuMemFree");
      }
    }
  }
}
