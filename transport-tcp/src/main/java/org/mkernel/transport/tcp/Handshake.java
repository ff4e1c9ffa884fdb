package org.mkernel.transport.tcp;

import java.io.IOException;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.util.concurrent.TimeUnit;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * How both ends of a connection prove that they know the key of the world: who connects first says
 * who it is with a nonce, gets a nonce, proves, and gets a proof. Messages have a fixed length.
 *
 * @param rank who connects
 * @param stream which of its connections to the other
 */
record Handshake(int rank, int stream) {
  private static final int MAGIC = 0x6d6b7463;
  private static final int VERSION = 1;
  private static final int PROOF_BYTES = 32;
  private static final int HELLO_BYTES = 4 * Integer.BYTES + PROOF_BYTES;
  private static final SecureRandom RANDOM = new SecureRandom();
  private static final String ALGORITHM = "HmacSHA256";

  /** The part of the rank that connects. */
  void offer(Socket socket, byte[] key, long deadline) throws IOException {
    byte[] hello =
        ByteBuffer.allocate(HELLO_BYTES)
            .putInt(MAGIC)
            .putInt(VERSION)
            .putInt(rank)
            .putInt(stream)
            .put(nonce())
            .array();
    socket.getOutputStream().write(hello);
    byte[] challenge = read(socket, PROOF_BYTES, deadline);
    socket.getOutputStream().write(proof(key, "connects", hello, challenge));
    byte[] proof = read(socket, PROOF_BYTES, deadline);
    if (!MessageDigest.isEqual(proof, proof(key, "listens", hello, challenge))) {
      throw new IOException("the other end does not know the key of the world");
    }
  }

  /** The part of the rank that listens. */
  static Handshake accept(Socket socket, byte[] key, long deadline) throws IOException {
    byte[] hello = read(socket, HELLO_BYTES, deadline);
    ByteBuffer in = ByteBuffer.wrap(hello);
    if (in.getInt() != MAGIC || in.getInt() != VERSION) {
      throw new IOException("no greeting of this version");
    }
    byte[] challenge = nonce();
    socket.getOutputStream().write(challenge);
    byte[] proof = read(socket, PROOF_BYTES, deadline);
    if (!MessageDigest.isEqual(proof, proof(key, "connects", hello, challenge))) {
      throw new IOException("the other end does not know the key of the world");
    }
    socket.getOutputStream().write(proof(key, "listens", hello, challenge));
    return new Handshake(in.getInt(), in.getInt());
  }

  private static byte[] nonce() {
    byte[] nonce = new byte[PROOF_BYTES];
    RANDOM.nextBytes(nonce);
    return nonce;
  }

  private static byte[] proof(byte[] key, String who, byte[] hello, byte[] challenge) {
    try {
      Mac mac = Mac.getInstance(ALGORITHM);
      mac.init(new SecretKeySpec(key, ALGORITHM));
      mac.update(who.getBytes(StandardCharsets.US_ASCII));
      mac.update(hello);
      return mac.doFinal(challenge);
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("every Java platform has " + ALGORITHM, e);
    }
  }

  /** Reads so many bytes; slow ones win no time. */
  private static byte[] read(Socket socket, int count, long deadline) throws IOException {
    byte[] bytes = new byte[count];
    for (int at = 0; at < count; ) {
      long millis = TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime());
      if (millis <= 0) {
        throw new IOException("the other end takes too long");
      }
      socket.setSoTimeout((int) Math.min(millis, Integer.MAX_VALUE));
      int read = socket.getInputStream().read(bytes, at, count - at);
      if (read < 0) {
        throw new IOException("the connection was closed");
      }
      at += read;
    }
    return bytes;
  }
}
