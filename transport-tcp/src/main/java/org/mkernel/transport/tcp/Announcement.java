package org.mkernel.transport.tcp;

import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.util.List;
import org.mkernel.api.Failure;
import org.mkernel.api.MismatchException;
import org.mkernel.api.spi.Transfer;

/**
 * What a rank tells its peers of its transfers: each by peer, span, offset, pitch, rows, bytes of a
 * row and offset of the flag. Frames then name transfers, and never addresses.
 */
final class Announcement {
  private static final int VERSION = 1;
  private static final int TRANSFER_BYTES = 2 * Integer.BYTES + 5 * Long.BYTES;

  private Announcement() {}

  static byte[] encode(List<Transfer> transfers) {
    ByteBuffer out =
        ByteBuffer.allocate(Math.addExact(8, Math.multiplyExact(TRANSFER_BYTES, transfers.size())));
    out.putInt(VERSION).putInt(transfers.size());
    for (Transfer t : transfers) {
      out.putInt(t.peer()).putInt(t.span()).putLong(t.offset()).putLong(t.pitch());
      out.putLong(t.rows()).putLong(t.rowBytes()).putLong(t.flagOffset());
    }
    return out.array();
  }

  /** Hears of transfers. */
  interface Each {
    void transfer(int number, Transfer transfer);
  }

  static void decode(int from, byte[] bytes, Each each) {
    ByteBuffer in = ByteBuffer.wrap(bytes);
    try {
      int version = in.getInt();
      int count = in.getInt();
      if (version != VERSION || count < 0 || in.remaining() != (long) count * TRANSFER_BYTES) {
        throw unreadable(from, bytes);
      }
      for (int number = 0; number < count; number++) {
        int peer = in.getInt();
        int span = in.getInt();
        long offset = in.getLong();
        long pitch = in.getLong();
        each.transfer(
            number,
            new Transfer(
                peer, 0, 0, span, offset, pitch, in.getLong(), in.getLong(), in.getLong()));
      }
    } catch (BufferUnderflowException e) {
      throw unreadable(from, bytes);
    }
  }

  private static MismatchException unreadable(int from, byte[] bytes) {
    return new MismatchException(
        "rank %d announces its transfers in %d bytes that can't be read"
            .formatted(from, bytes.length),
        Failure.remedy("give all ranks the same transport and version of mkernel").withPeer(from));
  }
}
