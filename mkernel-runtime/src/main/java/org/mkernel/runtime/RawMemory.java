package org.mkernel.runtime;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/** Memory of the host by address. Callers have checked their bounds: nothing is checked here. */
final class RawMemory {
  private static final MemorySegment ALL = all();

  /** Signals are little endian on every machine, as a network adapter writes them. */
  private static final VarHandle SIGNAL =
      ValueLayout.JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN).varHandle();

  private RawMemory() {}

  @SuppressWarnings("restricted") // The one place of the runtime that follows addresses.
  private static MemorySegment all() {
    return MemorySegment.NULL.reinterpret(Long.MAX_VALUE);
  }

  /** A view of memory, for classes that do check. */
  static MemorySegment segment(long address, long bytes) {
    return ALL.asSlice(address, bytes);
  }

  /** Copies bytes that do not overlap. */
  static void copy(long from, long to, long bytes) {
    MemorySegment.copy(ALL, from, ALL, to, bytes);
  }

  /** Stores a signal after all that this thread wrote before. */
  static void raise(long address, long value) {
    SIGNAL.setRelease(ALL, address, value);
  }

  /** Loads a signal before all that this thread reads after. */
  static long acquire(long address) {
    return (long) SIGNAL.getAcquire(ALL, address);
  }
}
