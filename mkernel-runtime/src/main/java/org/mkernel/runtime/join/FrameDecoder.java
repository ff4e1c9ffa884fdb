package org.mkernel.runtime.join;

import java.nio.ByteBuffer;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * Cuts a stream into frames: length of what follows up to the seal (4 bytes), type (1), payload,
 * and once the handshake is done a seal (32). It holds no more than arrived, and at most one frame.
 */
final class FrameDecoder {
  static final int HEAD_BYTES = Integer.BYTES + 1;
  private static final int FIRST_BYTES = 512;

  private int maxPayload;
  private @Nullable Seal seal;
  private byte[] bytes = new byte[FIRST_BYTES];
  private int filled;

  FrameDecoder(int maxPayload) {
    this.maxPayload = maxPayload;
  }

  /** Frames from now on carry a seal, and may be longer. */
  void seal(Seal with, int payload) {
    seal = with;
    maxPayload = payload;
  }

  /**
   * A frame.
   *
   * @param type what it is
   * @param payload what it holds
   */
  record Frame(byte type, byte[] payload) {}

  /**
   * Takes bytes until a frame is complete.
   *
   * @param in what arrived; what belongs to the next frame stays in it
   * @return the frame, or null when more bytes are needed
   * @throws ProtocolException when no such frame is allowed
   */
  @Nullable Frame next(ByteBuffer in) throws ProtocolException {
    if (!fill(in, HEAD_BYTES)) {
      return null;
    }
    int length = ByteBuffer.wrap(bytes).getInt();
    if (length < 1 || length - 1 > maxPayload) {
      throw new ProtocolException(
          "a frame of %d bytes; 1 to %d are allowed".formatted(length, maxPayload + 1));
    }
    int body = Integer.BYTES + length;
    if (!fill(in, body + (seal == null ? 0 : Seal.BYTES))) {
      return null;
    }
    if (seal != null && !seal.fits(bytes, body, Arrays.copyOfRange(bytes, body, filled))) {
      throw new ProtocolException("a frame whose seal does not fit");
    }
    Frame frame = new Frame(bytes[Integer.BYTES], Arrays.copyOfRange(bytes, HEAD_BYTES, body));
    filled = 0;
    if (bytes.length > FIRST_BYTES) {
      bytes = new byte[FIRST_BYTES];
    }
    return frame;
  }

  /** Takes bytes until there are so many; room grows with what arrives, not with what was said. */
  private boolean fill(ByteBuffer in, int wanted) {
    while (filled < wanted && in.hasRemaining()) {
      if (filled == bytes.length) {
        bytes = Arrays.copyOf(bytes, Math.min(2 * bytes.length, Math.max(wanted, FIRST_BYTES)));
      }
      int count = Math.min(Math.min(wanted, bytes.length) - filled, in.remaining());
      in.get(bytes, filled, count);
      filled += count;
    }
    return filled >= wanted;
  }

  /** Bytes held. */
  int held() {
    return bytes.length;
  }

  static byte[] encode(byte type, byte[] payload, @Nullable Seal seal) {
    int body = HEAD_BYTES + payload.length;
    byte[] frame = new byte[body + (seal == null ? 0 : Seal.BYTES)];
    ByteBuffer.wrap(frame).putInt(payload.length + 1).put(type).put(payload);
    if (seal != null) {
      System.arraycopy(seal.next(frame, body), 0, frame, body, Seal.BYTES);
    }
    return frame;
  }
}
