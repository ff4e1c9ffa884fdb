package org.mkernel.transport.tcp;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import org.jspecify.annotations.Nullable;

/** What comes in on one connection. Used by one thread, the receiver. */
final class ReceiveStream {
  private final int peer;
  private final SocketChannel socket;
  private final Inbox inbox;
  private final ByteBuffer header = ByteBuffer.allocateDirect(FrameHeader.BYTES);
  private final ByteBuffer discarded;
  private Inbox.@Nullable Table table;
  private @Nullable Incoming current;
  private ByteBuffer[] parts = {};
  private int piece;
  private int at;
  private long epoch;
  private long left;
  private boolean inPayload;

  ReceiveStream(int peer, SocketChannel socket, Inbox inbox, ByteBuffer discarded) {
    this.peer = peer;
    this.socket = socket;
    this.inbox = inbox;
    this.discarded = discarded;
  }

  int peer() {
    return peer;
  }

  SocketChannel socket() {
    return socket;
  }

  /**
   * Reads what has come.
   *
   * @param budget about how many bytes at most
   * @throws IOException when the connection ends, or what comes is not allowed
   */
  void receive(long budget) throws IOException {
    long done = 0;
    while (done < budget) {
      long count = inPayload ? readPayload() : read(header);
      if (count == 0) {
        return;
      }
      done += count;
      if (!inPayload && !header.hasRemaining()) {
        begin();
      }
    }
  }

  private long read(ByteBuffer into) throws IOException {
    int count = socket.read(into);
    if (count < 0) {
      throw new IOException("the connection was closed");
    }
    return count;
  }

  private long readPayload() throws IOException {
    Inbox.Table of = table;
    if (of == null || of.isClosed()) {
      return discard();
    }
    long count = socket.read(parts, at, parts.length - at);
    if (count < 0) {
      throw new IOException("the connection was closed amid a transfer");
    }
    int last = parts.length - 1;
    while (at < last && !parts[at].hasRemaining()) {
      at++;
    }
    left -= Math.min(left, count);
    if (at == last) {
      finish();
    }
    return count;
  }

  /** Reads away what goes to an operation that was closed. */
  private long discard() throws IOException {
    discarded.clear().limit((int) Math.min(left, discarded.capacity()));
    long count = read(discarded);
    left -= count;
    if (left == 0) {
      inPayload = false;
      table = null;
      current = null;
      header.clear();
    }
    return count;
  }

  private void begin() throws IOException {
    int channel = FrameHeader.channel(header);
    int transfer = FrameHeader.transfer(header);
    piece = FrameHeader.piece(header);
    epoch = FrameHeader.epoch(header);
    left = FrameHeader.length(header);
    if (FrameHeader.magic(header) != FrameHeader.MAGIC || left < 0) {
      throw new IOException("what comes is no frame");
    }
    table = inbox.table(channel);
    if (table == null) {
      if (!inbox.wasOpened(channel)) {
        throw new IOException("a frame for operation %d, which is not open".formatted(channel));
      }
      current = null;
    } else {
      current = table.incoming(peer, transfer);
      check(current, transfer);
    }
    header.clear();
    inPayload = true;
    Incoming to = current;
    if (to != null) {
      parts = to.rewind(piece, header);
      at = 0;
    }
    if (left == 0) {
      finish();
    }
  }

  private void check(@Nullable Incoming to, int transfer) throws IOException {
    if (to == null
        || piece < 0
        || piece >= to.pieces()
        || to.length(piece) != left
        || epoch <= to.arrived(piece)) {
      throw new IOException(
          "transfer %d, piece %d of %d bytes in epoch %d was not announced"
              .formatted(transfer, piece, left, epoch));
    }
  }

  private void finish() throws IOException {
    inPayload = false;
    Incoming to = current;
    Inbox.Table of = table;
    if (to != null && of != null && !of.isClosed()) {
      to.complete(piece, epoch);
    }
    table = null;
    current = null;
  }
}
