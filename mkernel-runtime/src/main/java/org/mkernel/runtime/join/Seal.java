package org.mkernel.runtime.join;

import java.nio.ByteBuffer;
import java.security.MessageDigest;
import javax.crypto.Mac;

/**
 * Authenticates the frames of one direction of a connection. Frames are numbered: one that is
 * repeated, left out or moved does not fit.
 */
final class Seal {
  static final int BYTES = Secret.BYTES;

  private final Mac mac;
  private final ByteBuffer number = ByteBuffer.allocate(Long.BYTES);
  private long frames;

  Seal(byte[] key) {
    this.mac = Secret.mac(key);
  }

  /** The seal of the next frame. */
  byte[] next(byte[] frame, int length) {
    mac.update(number.clear().putLong(frames++).flip());
    mac.update(frame, 0, length);
    return mac.doFinal();
  }

  /** Whether a seal is that of the next frame. */
  boolean fits(byte[] frame, int length, byte[] seal) {
    return MessageDigest.isEqual(next(frame, length), seal);
  }
}
