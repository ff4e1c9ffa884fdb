package org.mkernel.runtime.join;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.security.GeneralSecurityException;
import java.util.EnumSet;
import java.util.Optional;
import java.util.Set;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.mkernel.api.Config;
import org.mkernel.api.Failure;
import org.mkernel.api.UnavailableException;
import org.mkernel.api.UsageException;

/**
 * What all ranks of a world know and nobody else. It never travels: ranks prove that they know it.
 * Without one, a world keeps to the loopback addresses of its host.
 */
final class Secret {
  /** Bytes of a proof, of a key and of a nonce. */
  static final int BYTES = 32;

  private static final String ALGORITHM = "HmacSHA256";
  private static final int LEAST = 16;
  private static final int MOST = 4096;
  private static final String REMEDY =
      "give all ranks the same MKERNEL_SECRET or MKERNEL_SECRET_FILE, such as the output of"
          + " \"openssl rand -hex 32\"";

  private final byte[] key;
  private final boolean shared;

  private Secret(byte[] key, boolean shared) {
    this.key = key;
    this.shared = shared;
  }

  /** The secret of a world that keeps to one host: everybody knows it. */
  static Secret none() {
    return new Secret("mkernel, one host".getBytes(StandardCharsets.US_ASCII), false);
  }

  /**
   * A secret.
   *
   * @param text at least 16 bytes in UTF-8
   * @return the secret
   * @throws UsageException when it is too short or too long
   */
  static Secret of(String text) {
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    if (bytes.length < LEAST || bytes.length > MOST) {
      throw new UsageException(
          "the secret has %d bytes; %d to %d are needed".formatted(bytes.length, LEAST, MOST),
          Failure.remedy(REMEDY));
    }
    return new Secret(bytes, true);
  }

  /**
   * Reads the options {@code secret} and {@code secret-file}.
   *
   * @param config settings
   * @return the secret, or {@link #none}
   * @throws UsageException when both are set or what they hold is no secret
   * @throws UnavailableException when the file can't be read
   */
  static Secret from(Config config) {
    Optional<String> text = config.option("secret");
    Optional<String> file = config.option("secret-file");
    if (text.isPresent() && file.isPresent()) {
      throw new UsageException(
          "MKERNEL_SECRET and MKERNEL_SECRET_FILE are both set", Failure.remedy("unset one"));
    }
    if (text.isPresent()) {
      return of(text.get());
    }
    return file.map(Path::of).map(Secret::read).orElseGet(Secret::none);
  }

  private static Secret read(Path file) {
    try {
      Set<PosixFilePermission> others =
          EnumSet.of(
              PosixFilePermission.OTHERS_READ,
              PosixFilePermission.OTHERS_WRITE,
              PosixFilePermission.GROUP_WRITE);
      others.retainAll(Files.getPosixFilePermissions(file));
      if (!others.isEmpty()) {
        throw new UsageException(
            "the secret file %s is open to others: %s".formatted(file, others),
            Failure.remedy("chmod 600 " + file));
      }
      if (Files.size(file) > MOST) {
        throw new UsageException(
            "the secret file %s has %d bytes; at most %d are allowed"
                .formatted(file, Files.size(file), MOST),
            Failure.remedy(REMEDY));
      }
      return of(Files.readString(file).strip());
    } catch (IOException e) {
      throw new UnavailableException(
          "the secret file %s can't be read: %s".formatted(file, e), Failure.remedy(REMEDY), e);
    }
  }

  /** Whether there is a secret, so that a world may leave its host. */
  boolean isShared() {
    return shared;
  }

  /**
   * A proof of knowing the secret, or a key that only who knows it can derive.
   *
   * @param purpose what for: equal messages give other results for other purposes
   * @param messages what it is bound to; each of fixed length for a purpose
   * @return {@value #BYTES} bytes
   */
  byte[] derive(String purpose, byte[]... messages) {
    Mac mac = mac(key);
    mac.update(purpose.getBytes(StandardCharsets.US_ASCII));
    mac.update((byte) 0);
    for (byte[] message : messages) {
      mac.update(message);
    }
    return mac.doFinal();
  }

  static Mac mac(byte[] key) {
    try {
      Mac mac = Mac.getInstance(ALGORITHM);
      mac.init(new SecretKeySpec(key, ALGORITHM));
      return mac;
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("every Java platform has " + ALGORITHM, e);
    }
  }
}
