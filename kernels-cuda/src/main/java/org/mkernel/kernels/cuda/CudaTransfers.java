package org.mkernel.kernels.cuda;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.bytedeco.cuda.global.cudart;

/** Copies between the host and the GPU that are done when they return. */
final class CudaTransfers implements AutoCloseable {
  /** Heap memory goes through native memory, so many bytes at a time. */
  private static final long STAGE = 4 << 20;

  private final CudaContext context;
  private final CudaStream stream;

  CudaTransfers(CudaContext context) {
    this.context = context;
    this.stream = new CudaStream(context);
  }

  CudaStream stream() {
    return stream;
  }

  void read(long address, MemorySegment to) {
    if (to.isNative()) {
      copy(address, to.address(), to.byteSize());
      return;
    }
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment stage = arena.allocate(Math.min(STAGE, to.byteSize()));
      for (long at = 0; at < to.byteSize(); at += STAGE) {
        long bytes = Math.min(STAGE, to.byteSize() - at);
        copy(address + at, stage.address(), bytes);
        MemorySegment.copy(stage, 0, to, at, bytes);
      }
    }
  }

  void write(MemorySegment from, long address) {
    if (from.isNative()) {
      copy(from.address(), address, from.byteSize());
      return;
    }
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment stage = arena.allocate(Math.min(STAGE, from.byteSize()));
      for (long at = 0; at < from.byteSize(); at += STAGE) {
        long bytes = Math.min(STAGE, from.byteSize() - at);
        MemorySegment.copy(from, at, stage, 0, bytes);
        copy(stage.address(), address + at, bytes);
      }
    }
  }

  /** The driver tells by the addresses which side each one is on. */
  private void copy(long from, long to, long bytes) {
    if (bytes == 0) {
      return;
    }
    try (CudaContext.Scope _ = context.enter()) {
      int code = cudart.cuMemcpyAsync(to, from, bytes, stream.handle());
      if (code != cudart.CUDA_SUCCESS) {
        throw Driver.failure(
            code, "cuMemcpyAsync of %d bytes from 0x%x to 0x%x".formatted(bytes, from, to));
      }
    }
    stream.synchronize();
  }

  @Override
  public void close() {
    stream.close();
  }
}
