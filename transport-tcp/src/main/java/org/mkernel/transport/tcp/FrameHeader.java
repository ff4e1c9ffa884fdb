package org.mkernel.transport.tcp;

import java.nio.ByteBuffer;

/** What goes before the bytes of a piece: magic, channel, transfer, piece, epoch, bytes. */
final class FrameHeader {
  static final int BYTES = 4 * Integer.BYTES + 2 * Long.BYTES;
  static final int MAGIC = 0x6d6b5450;

  private static final int CHANNEL = 4;
  private static final int TRANSFER = 8;
  private static final int PIECE = 12;
  private static final int EPOCH = 16;
  private static final int LENGTH = 24;

  private FrameHeader() {}

  static void put(ByteBuffer out, int channel, int transfer, int piece, long epoch, long length) {
    out.putInt(0, MAGIC)
        .putInt(CHANNEL, channel)
        .putInt(TRANSFER, transfer)
        .putInt(PIECE, piece)
        .putLong(EPOCH, epoch)
        .putLong(LENGTH, length)
        .clear();
  }

  static int magic(ByteBuffer in) {
    return in.getInt(0);
  }

  static int channel(ByteBuffer in) {
    return in.getInt(CHANNEL);
  }

  static int transfer(ByteBuffer in) {
    return in.getInt(TRANSFER);
  }

  static int piece(ByteBuffer in) {
    return in.getInt(PIECE);
  }

  static long epoch(ByteBuffer in) {
    return in.getLong(EPOCH);
  }

  static long length(ByteBuffer in) {
    return in.getLong(LENGTH);
  }
}
