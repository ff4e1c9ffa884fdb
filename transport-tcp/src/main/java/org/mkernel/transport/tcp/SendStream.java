package org.mkernel.transport.tcp;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import org.jspecify.annotations.Nullable;

/** What waits to be written to one connection. Used by one thread, the proxy. */
final class SendStream {
  private final SocketChannel socket;
  private final Outgoing[] waiting;
  private final long[] epochs;
  private final int mask;
  private final ByteBuffer header = ByteBuffer.allocateDirect(FrameHeader.BYTES);
  private long head;
  private long tail;
  private @Nullable Outgoing current;
  private int at;

  SendStream(SocketChannel socket, int queue) {
    this.socket = socket;
    int size = queue == 1 ? 1 : Integer.highestOneBit(queue - 1) << 1;
    this.waiting = new Outgoing[size];
    this.epochs = new long[size];
    this.mask = size - 1;
  }

  boolean hasRoom(int pieces) {
    return tail - head + pieces <= waiting.length;
  }

  boolean isIdle() {
    return head == tail;
  }

  void add(Outgoing piece, long epoch) {
    waiting[(int) tail & mask] = piece;
    epochs[(int) tail & mask] = epoch;
    tail++;
  }

  /**
   * Writes what the connection takes.
   *
   * @param budget about how many bytes at most
   * @return bytes written
   */
  long progress(long budget) throws IOException {
    long done = 0;
    while (head != tail && done < budget) {
      Outgoing piece = current;
      if (piece == null) {
        piece = waiting[(int) head & mask];
        FrameHeader.put(
            header,
            piece.channel.number(),
            piece.transfer,
            piece.piece,
            epochs[(int) head & mask],
            piece.length);
        piece.rewind(header);
        current = piece;
        at = 0;
      }
      long written = socket.write(piece.parts, at, piece.parts.length - at);
      if (written == 0) {
        break;
      }
      done += written;
      while (at < piece.parts.length && !piece.parts[at].hasRemaining()) {
        at++;
      }
      if (at == piece.parts.length) {
        current = null;
        head++;
        piece.channel.sent(piece.transfer);
      }
    }
    return done;
  }
}
