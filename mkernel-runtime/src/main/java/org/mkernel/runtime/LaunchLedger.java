package org.mkernel.runtime;

import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;

/**
 * Compares the order of launches between the ranks of a process. The n-th launch of every rank must
 * be of the same operation; the first rank to launch writes down which, the others compare.
 */
final class LaunchLedger {
  private static final int SLOTS = 1024;
  private static final int OPERATION_BITS = 20;
  static final int MAX_OPERATIONS = 1 << OPERATION_BITS;

  private final AtomicLongArray slots = new AtomicLongArray(SLOTS);
  private final AtomicLong last = new AtomicLong();

  /**
   * Writes down or compares a launch.
   *
   * @param sequence the rank's count of launches, from 1
   * @param operation the number of the operation
   * @return −1 when it agrees, or the operation that another rank launched instead
   */
  int record(long sequence, int operation) {
    int slot = (int) (sequence % SLOTS);
    long mine = (sequence << OPERATION_BITS) | operation;
    while (true) {
      long there = slots.get(slot);
      long sequenceThere = there >>> OPERATION_BITS;
      if (sequenceThere > sequence) {
        // Others are a whole ring ahead: nothing is left to compare with.
        return -1;
      }
      if (sequenceThere == sequence) {
        return there == mine ? -1 : (int) (there & (MAX_OPERATIONS - 1));
      }
      if (slots.compareAndSet(slot, there, mine)) {
        last.accumulateAndGet(sequence, Math::max);
        return -1;
      }
    }
  }

  /** The latest launch that was written down; 0 before the first. */
  long last() {
    return last.get();
  }

  /**
   * A launch that was written down.
   *
   * @param sequence which
   * @return the operation, or −1 when it is no longer kept
   */
  int operation(long sequence) {
    long there = slots.get((int) (sequence % SLOTS));
    return there >>> OPERATION_BITS == sequence ? (int) (there & (MAX_OPERATIONS - 1)) : -1;
  }
}
