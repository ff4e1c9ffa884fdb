package org.mkernel.kernels.cuda;

import java.lang.foreign.MemorySegment;

/** Memory of the host by address. */
final class HostMemory {
  private HostMemory() {}

  /** A view of memory that the caller owns. */
  @SuppressWarnings("restricted") // The one place of this module that follows addresses.
  static MemorySegment segment(long address, long bytes) {
    return MemorySegment.ofAddress(address).reinterpret(bytes);
  }
}
