package org.mkernel.kernels.cuda;

import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicBoolean;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.PointerPointer;
import org.mkernel.api.spi.Device;

/** Memory of the host that the GPU follows too: for what both sides read and write all the time. */
final class PinnedMemory implements Device.Pinned {
  private final CudaContext context;
  private final long hostAddress;
  private final long address;
  private final long bytes;
  private final AtomicBoolean closed = new AtomicBoolean();

  private PinnedMemory(CudaContext context, long hostAddress, long address, long bytes) {
    this.context = context;
    this.hostAddress = hostAddress;
    this.address = address;
    this.bytes = bytes;
  }

  /** Allocates zeroed memory, aligned to a page. */
  static PinnedMemory allocate(CudaContext context, long bytes) {
    try (CudaContext.Scope _ = context.enter();
        PointerPointer<Pointer> host = new PointerPointer<>(1)) {
      Driver.check(
          cudart.cuMemHostAlloc(
              host, bytes, cudart.CU_MEMHOSTALLOC_PORTABLE | cudart.CU_MEMHOSTALLOC_DEVICEMAP),
          "cuMemHostAlloc of %d bytes".formatted(bytes));
      Pointer pointer = host.get();
      long[] device = new long[1];
      int code = cudart.cuMemHostGetDevicePointer(device, pointer, 0);
      if (code != cudart.CUDA_SUCCESS) {
        int _ = cudart.cuMemFreeHost(pointer);
        throw Driver.failure(code, "cuMemHostGetDevicePointer");
      }
      PinnedMemory memory = new PinnedMemory(context, pointer.address(), device[0], bytes);
      memory.segment().fill((byte) 0);
      return memory;
    }
  }

  @Override
  public long address() {
    return address;
  }

  @Override
  public long hostAddress() {
    return hostAddress;
  }

  @Override
  public long bytes() {
    return bytes;
  }

  /** The memory as the host sees it. */
  MemorySegment segment() {
    return HostMemory.segment(hostAddress, bytes);
  }

  @Override
  public void close() {
    if (closed.compareAndSet(false, true)) {
      try (CudaContext.Scope _ = context.enter()) {
        Driver.check(cudart.cuMemFreeHost(new Address(hostAddress)), "cuMemFreeHost");
      }
    }
  }
}
