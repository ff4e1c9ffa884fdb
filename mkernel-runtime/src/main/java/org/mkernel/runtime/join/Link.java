package org.mkernel.runtime.join;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.util.ArrayDeque;
import java.util.Deque;
import org.jspecify.annotations.Nullable;

/** A connection as the control thread sees it: frames in, frames out, and never a wait. */
final class Link {
  /** More than two of the longest frames unread: the peer is as good as gone. */
  private static final long MAX_QUEUED = 3L * Message.MAX_PAYLOAD;

  private final SocketChannel channel;
  private final SelectionKey key;
  private final FrameDecoder decoder = new FrameDecoder(Message.MAX_HANDSHAKE);
  private final Deque<ByteBuffer> out = new ArrayDeque<>();
  private final String peerAddress;
  private @Nullable Seal seal;
  private long queued;
  private long lastSent = System.nanoTime();
  private long lastHeard = System.nanoTime();

  Link(SocketChannel channel, Selector selector) throws IOException {
    this.channel = channel;
    channel.configureBlocking(false);
    this.key = channel.register(selector, SelectionKey.OP_READ, this);
    this.peerAddress = String.valueOf(channel.getRemoteAddress());
  }

  /** Hears of frames. */
  interface Handler {
    /**
     * A frame arrived.
     *
     * @param link where
     * @param frame what
     * @throws IOException when it is not allowed: the connection is closed
     */
    void received(Link link, FrameDecoder.Frame frame) throws IOException;
  }

  /** Frames both ways carry a seal from now on. */
  void seal(Seal outgoing, Seal incoming) {
    seal = outgoing;
    decoder.seal(incoming, Message.MAX_PAYLOAD);
  }

  /** Reads what has arrived. */
  void read(ByteBuffer buffer, Handler handler) throws IOException {
    buffer.clear();
    int count = channel.read(buffer);
    if (count < 0) {
      throw new IOException("the connection was closed");
    }
    if (count > 0) {
      lastHeard = System.nanoTime();
    }
    buffer.flip();
    for (FrameDecoder.Frame frame = decoder.next(buffer);
        frame != null;
        frame = decoder.next(buffer)) {
      handler.received(this, frame);
    }
  }

  void send(byte type, byte[] payload) throws IOException {
    byte[] frame = FrameDecoder.encode(type, payload, seal);
    queued += frame.length;
    if (queued > MAX_QUEUED) {
      throw new IOException("it does not take in what it is sent: %d bytes wait".formatted(queued));
    }
    out.add(ByteBuffer.wrap(frame));
    lastSent = System.nanoTime();
    flush();
  }

  /** Writes what the connection takes. */
  void flush() throws IOException {
    ByteBuffer first = out.peek();
    while (first != null) {
      queued -= channel.write(first);
      if (first.hasRemaining()) {
        break;
      }
      out.remove();
      first = out.peek();
    }
    key.interestOps(
        first == null ? SelectionKey.OP_READ : SelectionKey.OP_READ | SelectionKey.OP_WRITE);
  }

  boolean isFlushed() {
    return out.isEmpty();
  }

  long sinceSent(long now) {
    return now - lastSent;
  }

  long sinceHeard(long now) {
    return now - lastHeard;
  }

  /** Says that nothing more comes; what the peer still sends can be read. */
  void finish() {
    try {
      var _ = channel.shutdownOutput();
    } catch (IOException e) {
      close();
    }
  }

  boolean isOpen() {
    return channel.isOpen();
  }

  SocketChannel channel() {
    return channel;
  }

  String peerAddress() {
    return peerAddress;
  }

  /** Closes the connection; what was not written is lost. */
  void close() {
    key.cancel();
    try {
      channel.close();
    } catch (IOException e) {
      // It is gone either way, and nobody counts on it any more.
      out.clear();
    }
  }
}
