package org.mkernel.kernels.cuda;

import java.util.concurrent.atomic.AtomicBoolean;
import org.bytedeco.cuda.cudart.CUipcMemHandle_v1;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.BytePointer;
import org.mkernel.api.Failure;
import org.mkernel.api.UnavailableException;
import org.mkernel.api.spi.Device;

/** Memory of a GPU that another rank owns. */
final class MappedMemory implements Device.Memory {
  private final CudaContext context;

  /** Where the whole allocation is mapped; 0 when it is of this process. */
  private final long mapping;

  private final long address;
  private final long bytes;
  private final AtomicBoolean closed = new AtomicBoolean();

  private MappedMemory(CudaContext context, long mapping, long address, long bytes) {
    this.context = context;
    this.mapping = mapping;
    this.address = address;
    this.bytes = bytes;
  }

  static MappedMemory map(CudaContext context, MemoryHandle handle) {
    if (handle.isOfThisProcess()) {
      return new MappedMemory(context, 0, handle.address(), handle.bytes());
    }
    long[] mapping = new long[1];
    try (CudaContext.Scope _ = context.enter();
        CUipcMemHandle_v1 ipc = new CUipcMemHandle_v1()) {
      new BytePointer(ipc).capacity(handle.ipc().length).put(handle.ipc());
      int code = cudart.cuIpcOpenMemHandle(mapping, ipc, cudart.CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
      if (code != cudart.CUDA_SUCCESS) {
        throw new UnavailableException(
            "memory of another process can't be mapped: %s".formatted(Driver.name(code)),
            Failure.remedy(
                    "ranks of a node need the same host, GPUs that reach each other (nvidia-smi topo"
                        + " -p2p r) and, in containers, a shared IPC and PID namespace")
                .withNativeCode(code));
      }
    }
    return new MappedMemory(context, mapping[0], mapping[0] + handle.offset(), handle.bytes());
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
    if (closed.compareAndSet(false, true) && mapping != 0) {
      try (CudaContext.Scope _ = context.enter()) {
        Driver.check(cudart.cuIpcCloseMemHandle(mapping), "cuIpcCloseMemHandle");
      }
    }
  }
}
