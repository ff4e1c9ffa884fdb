package org.mkernel.kernels.host;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * How much memory this process can still take. Linux promises more than it has and kills who uses
 * it; asking first turns that into an exception.
 */
final class AvailableMemory {
  private static final String MEMINFO = "MemAvailable:";
  private static final Path CGROUP = Path.of("/sys/fs/cgroup");

  private AvailableMemory() {}

  /** Bytes; the most there can be where the system does not say. */
  static long bytes() {
    Path group = CGROUP;
    long limit = number(group.resolve("memory.max"));
    long used = number(group.resolve("memory.current"));
    if (limit < 0) {
      group = CGROUP.resolve("memory");
      limit = number(group.resolve("memory.limit_in_bytes"));
      used = number(group.resolve("memory.usage_in_bytes"));
    }
    long system = system();
    if (limit < 0 || used < 0) {
      return system;
    }
    return Math.min(system, Math.max(0, limit - used + files(group.resolve("memory.stat"))));
  }

  /** Cached files count as used and are given up when memory is asked for. */
  private static long files(Path statistics) {
    long sum = 0;
    for (String line : lines(statistics)) {
      if (line.matches("(in)?active_file [0-9]{1,18}")) {
        sum += Long.parseLong(line.substring(line.indexOf(' ') + 1));
      }
    }
    return sum;
  }

  private static long system() {
    for (String line : lines(Path.of("/proc/meminfo"))) {
      if (line.startsWith(MEMINFO)) {
        String kibibytes = line.substring(MEMINFO.length()).replace("kB", "").strip();
        return Long.parseLong(kibibytes) << 10;
      }
    }
    return Long.MAX_VALUE;
  }

  private static long number(Path file) {
    List<String> lines = lines(file);
    return lines.isEmpty() || !lines.getFirst().matches("[0-9]{1,18}")
        ? -1
        : Long.parseLong(lines.getFirst());
  }

  private static List<String> lines(Path file) {
    try {
      return Files.readAllLines(file);
    } catch (IOException e) {
      return List.of();
    }
  }
}
