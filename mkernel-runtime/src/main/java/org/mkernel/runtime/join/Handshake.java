package org.mkernel.runtime.join;

import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.util.Arrays;
import org.mkernel.api.Failure;
import org.mkernel.api.MKernelException;
import org.mkernel.api.MismatchException;

/**
 * How a rank and rank 0 prove to each other that they know the secret. The rank says hello with a
 * nonce, rank 0 answers with a nonce of its own, the rank proves first, then rank 0: a stranger
 * gets no proof to work on. Both nonces make the keys of the connection, so that nothing of an
 * earlier one fits.
 */
final class Handshake {
  static final int VERSION = 1;
  private static final int MAGIC = 0x6d6b7276;
  private static final SecureRandom RANDOM = new SecureRandom();
  private static final int MAX_WORDS = 400;

  private Handshake() {}

  /** Fresh random bytes. */
  static byte[] nonce() {
    byte[] nonce = new byte[Secret.BYTES];
    RANDOM.nextBytes(nonce);
    return nonce;
  }

  /**
   * What a rank says first.
   *
   * @param version the protocol that it speaks
   * @param size what it takes for the size of the world
   * @param rank its number
   */
  record Hello(int version, int size, int rank) {
    byte[] encode() {
      return ByteBuffer.allocate(4 * Integer.BYTES + Secret.BYTES)
          .putInt(MAGIC)
          .putInt(version)
          .putInt(size)
          .putInt(rank)
          .put(nonce())
          .array();
    }

    static Hello decode(byte[] bytes) throws ProtocolException {
      int version = versionOf(bytes);
      if (version == VERSION && bytes.length != 4 * Integer.BYTES + Secret.BYTES) {
        throw new ProtocolException("a hello of %d bytes".formatted(bytes.length));
      }
      ByteBuffer in = ByteBuffer.wrap(bytes, 2 * Integer.BYTES, bytes.length - 2 * Integer.BYTES);
      return version == VERSION
          ? new Hello(version, in.getInt(), in.getInt())
          : new Hello(version, 0, 0);
    }
  }

  static byte[] challenge() {
    return ByteBuffer.allocate(2 * Integer.BYTES + Secret.BYTES)
        .putInt(MAGIC)
        .putInt(VERSION)
        .put(nonce())
        .array();
  }

  static void checkChallenge(byte[] challenge) throws ProtocolException {
    if (versionOf(challenge) != VERSION || challenge.length != 2 * Integer.BYTES + Secret.BYTES) {
      throw new ProtocolException("a challenge of %d bytes".formatted(challenge.length));
    }
  }

  private static int versionOf(byte[] bytes) throws ProtocolException {
    if (bytes.length < 2 * Integer.BYTES || ByteBuffer.wrap(bytes).getInt() != MAGIC) {
      throw new ProtocolException("no greeting of mkernel");
    }
    return ByteBuffer.wrap(bytes).getInt(Integer.BYTES);
  }

  static byte[] proof(Secret secret, byte[] hello, byte[] challenge) {
    return secret.derive("proof of a rank", hello, challenge);
  }

  static boolean proves(Secret secret, byte[] hello, byte[] challenge, byte[] proof) {
    return MessageDigest.isEqual(proof(secret, hello, challenge), proof);
  }

  /** Rank 0's proof, with the number of the world, from which keys of wires are derived. */
  static byte[] welcome(Secret secret, byte[] hello, byte[] challenge, byte[] world) {
    return ByteBuffer.allocate(2 * Secret.BYTES)
        .put(secret.derive("proof of rank 0", hello, challenge, world))
        .put(world)
        .array();
  }

  /**
   * Checks rank 0's proof.
   *
   * @return the number of the world
   */
  static byte[] checkWelcome(Secret secret, byte[] hello, byte[] challenge, byte[] welcome)
      throws ProtocolException {
    if (welcome.length != 2 * Secret.BYTES) {
      throw new ProtocolException("a welcome of %d bytes".formatted(welcome.length));
    }
    byte[] world = Arrays.copyOfRange(welcome, Secret.BYTES, welcome.length);
    if (!MessageDigest.isEqual(welcome(secret, hello, challenge, world), welcome)) {
      throw new ProtocolException("a welcome that does not prove knowledge of the secret");
    }
    return world;
  }

  /** Seals what rank 0 receives from a rank. */
  static Seal toHub(Secret secret, byte[] hello, byte[] challenge) {
    return new Seal(secret.derive("key of a rank", hello, challenge));
  }

  /** Seals what a rank receives from rank 0. */
  static Seal fromHub(Secret secret, byte[] hello, byte[] challenge) {
    return new Seal(secret.derive("key of rank 0", hello, challenge));
  }

  /** Why a rank is not let in. */
  enum Reason {
    /** Its proof is wrong. */
    SECRET("check that MKERNEL_SECRET or the secret file is the same for all ranks"),
    /** It speaks another protocol. */
    VERSION("run the same version of mkernel everywhere"),
    /** It takes the world for larger or smaller. */
    SIZE("give all ranks the same MKERNEL_WORLD_SIZE, and each world a rendezvous of its own"),
    /** Its number is taken. */
    DOUBLED("give each rank a number of its own, and each world a rendezvous of its own");

    private final String remedy;

    Reason(String remedy) {
      this.remedy = remedy;
    }

    MKernelException exception(String words, int rank) {
      return new MismatchException(words, Failure.remedy(remedy).withRank(rank));
    }
  }

  /**
   * A refusal.
   *
   * @param reason why
   * @param words the same in words
   */
  record Refusal(Reason reason, String words) {
    byte[] encode() {
      byte[] text = words.getBytes(StandardCharsets.UTF_8);
      return ByteBuffer.allocate(1 + Math.min(text.length, MAX_WORDS))
          .put((byte) reason.ordinal())
          .put(text, 0, Math.min(text.length, MAX_WORDS))
          .array();
    }

    static Refusal decode(byte[] bytes) throws ProtocolException {
      try {
        ByteBuffer in = ByteBuffer.wrap(bytes);
        int reason = in.get();
        if (reason < 0 || reason >= Reason.values().length || in.remaining() > MAX_WORDS) {
          throw new ProtocolException("a refusal for reason %d".formatted(reason));
        }
        // What a stranger writes must not move the cursor of a terminal.
        String words = StandardCharsets.UTF_8.decode(in).toString().replaceAll("\\p{Cntrl}", "?");
        return new Refusal(Reason.values()[reason], words);
      } catch (BufferUnderflowException e) {
        throw new ProtocolException("an empty refusal");
      }
    }
  }
}
