package org.mkernel.kernels.cuda;

import java.nio.ByteBuffer;
import java.security.SecureRandom;
import org.bytedeco.cuda.cudart.CUipcMemHandle_v1;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.SizeTPointer;
import org.mkernel.api.DeviceException;
import org.mkernel.api.Failure;
import org.mkernel.api.MismatchException;
import org.mkernel.api.UnavailableException;

/**
 * Memory of a GPU as a handle. The driver's own handle names a whole allocation, so the offset
 * travels with it; and it can't be opened by the process that made it, so that one is told.
 *
 * @param process what no other process has
 * @param address where the memory starts in the process that exported it
 * @param offset of that address in its allocation
 * @param bytes its size
 * @param ipc the driver's handle of the allocation
 */
record MemoryHandle(long process, long address, long offset, long bytes, byte[] ipc) {
  private static final int MAGIC = 0x6d6b6375;
  private static final int VERSION = 1;
  private static final int IPC_BYTES = 64;
  private static final int BYTES = 2 * Integer.BYTES + 4 * Long.BYTES + IPC_BYTES;
  private static final long PROCESS = new SecureRandom().nextLong();

  static MemoryHandle export(CudaContext context, long address, long bytes) {
    long[] base = new long[1];
    byte[] ipc = new byte[IPC_BYTES];
    try (CudaContext.Scope _ = context.enter();
        SizeTPointer size = new SizeTPointer(1);
        CUipcMemHandle_v1 handle = new CUipcMemHandle_v1()) {
      Driver.check(
          cudart.cuMemGetAddressRange(base, size, address),
          "cuMemGetAddressRange of 0x%x".formatted(address));
      long end = address - base[0] + bytes;
      if (bytes < 1 || end > size.get()) {
        throw new DeviceException(
            "%d bytes from 0x%x are not inside of one allocation, which is 0x%x with %d bytes"
                .formatted(bytes, address, base[0], size.get()),
            Failure.remedy("export memory of one allocation at a time"));
      }
      int code = cudart.cuIpcGetMemHandle(handle, base[0]);
      if (code != cudart.CUDA_SUCCESS) {
        throw new UnavailableException(
            "memory at 0x%x can't be exported: %s".formatted(address, Driver.name(code)),
            Failure.remedy(
                    "export memory of cuMemAlloc or cudaMalloc, which pools and virtual memory are not")
                .withNativeCode(code));
      }
      new BytePointer(handle).capacity(IPC_BYTES).get(ipc);
    }
    return new MemoryHandle(PROCESS, address, address - base[0], bytes, ipc);
  }

  boolean isOfThisProcess() {
    return process == PROCESS;
  }

  byte[] encode() {
    return ByteBuffer.allocate(BYTES)
        .putInt(MAGIC)
        .putInt(VERSION)
        .putLong(process)
        .putLong(address)
        .putLong(offset)
        .putLong(bytes)
        .put(ipc)
        .array();
  }

  static MemoryHandle decode(byte[] handle) {
    ByteBuffer in = ByteBuffer.wrap(handle);
    if (handle.length != BYTES || in.getInt() != MAGIC || in.getInt() != VERSION) {
      throw new MismatchException(
          "a rank sent a handle of GPU memory, %d bytes, that version %d can't read"
              .formatted(handle.length, VERSION),
          Failure.remedy("run the same version of mkernel on all ranks, and on GPUs"));
    }
    long process = in.getLong();
    long address = in.getLong();
    long offset = in.getLong();
    long bytes = in.getLong();
    byte[] ipc = new byte[IPC_BYTES];
    in.get(ipc);
    return new MemoryHandle(process, address, offset, bytes, ipc);
  }
}
