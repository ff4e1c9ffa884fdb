package org.mkernel.runtime;

import java.util.Arrays;

/**
 * What all channels of a rank share: the clock that shapes what it sends, and its faults. Used by
 * one thread, the proxy.
 */
final class EmulatedAdapter {
  /** A time that never comes. */
  static final long NEVER = Long.MAX_VALUE;

  /** What a slow adapter is compared with where no bandwidth or latency was given. */
  private static final double COMMON_BYTES_PER_NANO = 10;

  private static final double COMMON_LATENCY_NANOS = 2000;

  private final long origin = System.nanoTime();
  private final double nanosPerByte;
  private final long latencyNanos;
  private final long[] posted;
  private final long[] lostAfter;
  private final long[] errorAfter;
  private long overrunAfter = NEVER;
  private long completions;
  private double free;

  EmulatedAdapter(int rank, int worldSize, EmulatedOptions options) {
    posted = new long[worldSize];
    lostAfter = new long[worldSize];
    errorAfter = new long[worldSize];
    Arrays.fill(lostAfter, NEVER);
    Arrays.fill(errorAfter, NEVER);
    double factor = 1;
    for (EmulatedFault fault : options.faults()) {
      switch (fault) {
        case EmulatedFault.LostLink f when f.from() == rank -> lostAfter[f.to()] = f.after();
        case EmulatedFault.ErrorCompletion f when f.from() == rank ->
            errorAfter[f.to()] = f.after();
        case EmulatedFault.Overrun f when f.rank() == rank -> overrunAfter = f.after();
        case EmulatedFault.Slow f when f.rank() == rank -> factor = f.factor();
        default -> {
          // A fault of another rank.
        }
      }
    }
    double perByte = options.bytesPerSecond() == 0 ? 0 : 1e9 / options.bytesPerSecond();
    double latency = options.latencyNanos();
    if (factor > 1) {
      perByte = factor * (perByte == 0 ? 1 / COMMON_BYTES_PER_NANO : perByte);
      latency = factor * (latency == 0 ? COMMON_LATENCY_NANOS : latency);
    }
    nanosPerByte = perByte;
    latencyNanos = (long) latency;
  }

  /** Nanoseconds since it was made. */
  long now() {
    return System.nanoTime() - origin;
  }

  long latencyNanos() {
    return latencyNanos;
  }

  /**
   * Takes a transfer into the send queue.
   *
   * @return when its last byte arrives; {@link #NEVER} when the link is lost
   */
  long arrival(int peer, long bytes, long now) {
    if (posted[peer]++ >= lostAfter[peer]) {
      return NEVER;
    }
    free = Math.max(free, (double) now) + bytes * nanosPerByte;
    return (long) free + latencyNanos;
  }

  /** Whether the transfer that was taken last ends in an error. */
  boolean failsLast(int peer) {
    return posted[peer] > errorAfter[peer];
  }

  /** Counts a completion; false when its queue overruns. */
  boolean takesCompletion() {
    return completions++ < overrunAfter;
  }
}
