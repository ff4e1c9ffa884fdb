package org.mkernel.kernels.host;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * What a lane does while it waits: spins for what is about to come, yields to lanes that share its
 * processor, then sleeps, longer each time, so that sixteen ranks leave two processors usable.
 */
final class Idle {
  static final int SPINS = 50;
  static final int YIELDS = 100;
  private static final long FIRST_PARK_NANOS = TimeUnit.MICROSECONDS.toNanos(10);
  private static final long LAST_PARK_NANOS = TimeUnit.MICROSECONDS.toNanos(500);

  private Idle() {}

  /** Rests for the n-th time in a row, n from 0. */
  @SuppressWarnings("ThreadPriorityCheck") // A hint: lanes share processors; parking follows.
  static void rest(int n) {
    if (n < SPINS) {
      Thread.onSpinWait();
    } else if (n < SPINS + YIELDS) {
      Thread.yield();
    } else {
      int doublings = Math.min(n - SPINS - YIELDS, 6);
      LockSupport.parkNanos(Math.min(FIRST_PARK_NANOS << doublings, LAST_PARK_NANOS));
    }
  }
}
