package org.mkernel.kernels.host;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/** Host memory by address. Schedules were checked: nothing is checked here. */
final class Memory {
  static final MemorySegment ALL = all();

  static final ValueLayout.OfFloat FLOAT =
      ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  static final ValueLayout.OfShort SHORT =
      ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  private static final VarHandle SIGNAL =
      ValueLayout.JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN).varHandle();

  private Memory() {}

  @SuppressWarnings("restricted") // The one place of this module that follows addresses.
  private static MemorySegment all() {
    return MemorySegment.NULL.reinterpret(Long.MAX_VALUE);
  }

  /**
   * Copies rows; one copy where they are contiguous on both sides, none where they are the same.
   */
  static void copyRows(long from, long fromPitch, long to, long toPitch, long rows, long rowBytes) {
    if (from == to && fromPitch == toPitch) {
      return;
    }
    if (fromPitch == rowBytes && toPitch == rowBytes) {
      MemorySegment.copy(ALL, from, ALL, to, rows * rowBytes);
      return;
    }
    for (long row = 0; row < rows; row++) {
      MemorySegment.copy(ALL, from + row * fromPitch, ALL, to + row * toPitch, rowBytes);
    }
  }

  static long acquire(long address) {
    return (long) SIGNAL.getAcquire(ALL, address);
  }

  static void release(long address, long value) {
    SIGNAL.setRelease(ALL, address, value);
  }

  /** Adds one, as a release: what the thread wrote before is seen by who sees the sum. */
  static void addRelease(long address) {
    long _ = (long) SIGNAL.getAndAddRelease(ALL, address, 1L);
  }
}
