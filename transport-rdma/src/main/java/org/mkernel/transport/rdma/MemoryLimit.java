package org.mkernel.transport.rdma;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * How much memory this process may lock, as registration does.
 *
 * @param bytes the soft limit, {@link Long#MAX_VALUE} for none
 */
record MemoryLimit(long bytes) {
  /** Below this not even queues can be made. */
  static final long LEAST = 16L << 20;

  static final String REMEDY =
      "raise it: ulimit -l unlimited, LimitMEMLOCK=infinity in systemd units, --ulimit"
          + " memlock=-1 for containers";

  private static final String LINE = "Max locked memory";
  private static final long CAP_IPC_LOCK = 1L << 14;

  /** The limit of this process; none for those who may exceed it, and where it can't be read. */
  static MemoryLimit of(Path proc) {
    for (String line : lines(proc.resolve("self/status"))) {
      if (line.startsWith("CapEff:") && mayExceed(line.substring(7).strip())) {
        return new MemoryLimit(Long.MAX_VALUE);
      }
    }
    for (String line : lines(proc.resolve("self/limits"))) {
      if (line.startsWith(LINE)) {
        return parse(line.substring(LINE.length()).strip().replaceFirst(" .*", ""));
      }
    }
    return new MemoryLimit(Long.MAX_VALUE);
  }

  private static boolean mayExceed(String mask) {
    return mask.matches("[0-9a-f]{1,16}") && (Long.parseUnsignedLong(mask, 16) & CAP_IPC_LOCK) != 0;
  }

  private static MemoryLimit parse(String soft) {
    return new MemoryLimit(soft.matches("[0-9]{1,18}") ? Long.parseLong(soft) : Long.MAX_VALUE);
  }

  boolean isTooLow() {
    return bytes < LEAST;
  }

  @Override
  public String toString() {
    if (bytes == Long.MAX_VALUE) {
      return "no limit of locked memory";
    }
    return "a limit of locked memory of %d KiB".formatted(bytes >> 10);
  }

  private static Iterable<String> lines(Path file) {
    try {
      return Files.readAllLines(file, StandardCharsets.US_ASCII);
    } catch (IOException e) {
      return List.of();
    }
  }
}
