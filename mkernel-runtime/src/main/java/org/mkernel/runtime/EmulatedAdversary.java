package org.mkernel.runtime;

/** Draws what an adversarial network does. Equal seeds draw equally. Allocates nothing. */
final class EmulatedAdversary {
  private static final long SHORT_NANOS = 20_000;
  private static final long LONG_NANOS = 500_000;
  private static final int LONG_ONE_IN = 16;

  private long state;

  EmulatedAdversary(long seed) {
    state = seed;
  }

  /** SplitMix64 (Steele, Lea, Flood 2014). */
  private long next() {
    state += 0x9e3779b97f4a7c15L;
    long z = state;
    z = (z ^ (z >>> 30)) * 0xbf58476d1ce4e5b9L;
    z = (z ^ (z >>> 27)) * 0x94d049bb133111ebL;
    return z ^ (z >>> 31);
  }

  /** A number from 0 to {@code bound − 1}. */
  long below(long bound) {
    return Long.remainderUnsigned(next(), bound);
  }

  /** Mostly short, now and then long. */
  long delayNanos() {
    return below(below(LONG_ONE_IN) == 0 ? LONG_NANOS : SHORT_NANOS);
  }

  /** A step that, taken {@code count} times modulo {@code count}, visits everything once. */
  long step(long count) {
    while (true) {
      long step = 1 + below(count);
      if (gcd(step, count) == 1) {
        return step;
      }
    }
  }

  private static long gcd(long a, long b) {
    long x = a;
    long y = b;
    while (y != 0) {
      long rest = x % y;
      x = y;
      y = rest;
    }
    return x;
  }
}
