package org.mkernel.transport.tcp;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;

/** Host memory by address, seen as buffers that sockets read from and write to without a copy. */
final class Memory {
  /** A buffer counts its bytes with 31 bits. */
  private static final long MOST = 1L << 30;

  private static final VarHandle SIGNAL =
      ValueLayout.JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN).varHandle();
  private static final MemorySegment ALL = all();

  private Memory() {}

  @SuppressWarnings("restricted") // The one place of this module that follows addresses.
  private static MemorySegment all() {
    return MemorySegment.NULL.reinterpret(Long.MAX_VALUE);
  }

  /**
   * Views a part of a pitched matrix.
   *
   * @param address where its first row lies
   * @param pitch bytes from a row to the next
   * @param rowBytes bytes of a row
   * @param rows rows
   * @param from first byte of the part, in rows laid end to end
   * @param to end of the part
   * @return buffers that are together the part, in order
   */
  static List<ByteBuffer> views(
      long address, long pitch, long rowBytes, long rows, long from, long to) {
    List<ByteBuffer> views = new ArrayList<>();
    boolean contiguous = pitch == rowBytes || rows == 1;
    long width = contiguous ? rowBytes * rows : rowBytes;
    for (long at = from; at < to; ) {
      long row = at / width;
      long column = at % width;
      long length = Math.min(Math.min(width - column, to - at), MOST);
      views.add(ALL.asSlice(address + row * pitch + column, length).asByteBuffer());
      at += length;
    }
    return views;
  }

  /** Stores a signal after all that this thread wrote before. */
  static void raise(long address, long value) {
    SIGNAL.setRelease(ALL, address, value);
  }
}
