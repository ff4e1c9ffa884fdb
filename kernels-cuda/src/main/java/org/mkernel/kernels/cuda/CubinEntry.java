package org.mkernel.kernels.cuda;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.List;

/**
 * A compiled program as it is kept: what the compiler said, and the machine code.
 *
 * @param log what the compiler said; it tells registers, spills and stack of each kernel
 * @param cubin the machine code
 */
record CubinEntry(String log, byte[] cubin) {
  private static final long MAGIC = 0x6d6b637562696e31L; // "mkcubin1"
  private static final int SHA_BYTES = 32;
  private static final int HEADER = Long.BYTES + 2 * Integer.BYTES + SHA_BYTES;

  /** The bytes of a file: magic, sizes, SHA-256 of the rest, log, cubin. */
  byte[] encode() {
    byte[] text = log.getBytes(StandardCharsets.UTF_8);
    ByteBuffer out = ByteBuffer.allocate(HEADER + text.length + cubin.length);
    out.putLong(MAGIC).putInt(text.length).putInt(cubin.length);
    out.position(HEADER);
    out.put(text).put(cubin);
    MessageDigest sha = sha256();
    sha.update(out.array(), HEADER, text.length + cubin.length);
    out.put(HEADER - SHA_BYTES, sha.digest());
    return out.array();
  }

  /**
   * Reads a file.
   *
   * @throws CorruptException when it is not whole
   */
  static CubinEntry decode(byte[] file) throws CorruptException {
    ByteBuffer in = ByteBuffer.wrap(file);
    if (file.length < HEADER || in.getLong() != MAGIC) {
      throw new CorruptException("it does not begin as an entry does");
    }
    int text = in.getInt();
    int code = in.getInt();
    if (text < 0 || code < 0 || (long) HEADER + text + code != file.length) {
      throw new CorruptException(
          "it has %d bytes; %d are needed".formatted(file.length, (long) HEADER + text + code));
    }
    byte[] wanted = new byte[SHA_BYTES];
    in.get(wanted);
    MessageDigest sha = sha256();
    sha.update(file, HEADER, text + code);
    if (!MessageDigest.isEqual(wanted, sha.digest())) {
      throw new CorruptException("its SHA-256 is not the one that it names");
    }
    byte[] log = new byte[text];
    byte[] cubin = new byte[code];
    in.get(log).get(cubin);
    return new CubinEntry(new String(log, StandardCharsets.UTF_8), cubin);
  }

  /** What each kernel uses. */
  List<KernelUsage> usage() {
    return KernelUsage.parse(log);
  }

  static MessageDigest sha256() {
    try {
      return MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every Java platform has SHA-256", e);
    }
  }

  /** A file is no entry, or not whole. */
  static final class CorruptException extends Exception {
    private static final long serialVersionUID = 1L;

    CorruptException(String message) {
      super(message);
    }
  }
}
