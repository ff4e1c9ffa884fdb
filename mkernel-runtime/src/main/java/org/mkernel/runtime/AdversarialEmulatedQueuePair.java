package org.mkernel.runtime;

import org.mkernel.api.spi.Wire;

/**
 * The worst connection that is still right: transfers overtake each other, their bytes arrive in
 * any order with pauses between, completions come late. A flag still follows its own bytes, and two
 * raises of one flag keep their order.
 */
final class AdversarialEmulatedQueuePair extends EmulatedQueuePair {
  /** How many transfers are mixed. */
  private static final int WINDOW = 8;

  private static final byte MOVING = 0;
  private static final byte DELIVERED = 1;
  private static final byte REPORTED = 2;

  private final EmulatedAdversary adversary;
  private final byte[] state;
  private final long[] first;
  private final long[] step;

  AdversarialEmulatedQueuePair(
      EmulatedAdapter adapter,
      EmulatedTransfers transfers,
      int depth,
      EmulatedAdversary adversary) {
    super(adapter, transfers, depth);
    this.adversary = adversary;
    this.state = new byte[mask + 1];
    this.first = new long[mask + 1];
    this.step = new long[mask + 1];
  }

  @Override
  void posted(int at) {
    state[at] = MOVING;
    long pieces = transfers.pieces(transfer[at]);
    if (pieces > 0) {
      first[at] = adversary.below(pieces);
      step[at] = adversary.step(pieces);
    }
    if (due[at] != EmulatedAdapter.NEVER) {
      due[at] += adversary.delayNanos();
    }
  }

  @Override
  long progress(long now, long budget, Wire.Completions completions) {
    long work = 0;
    int window = (int) Math.min(WINDOW, tail - head);
    int start = window == 0 ? 0 : (int) adversary.below(window);
    for (int i = 0; i < window; i++) {
      long entry = head + (start + i) % window;
      int at = (int) entry & mask;
      if (state[at] == MOVING && due[at] <= now && mayMove(entry)) {
        work += move(at, now);
      } else if (state[at] == DELIVERED && done[at] <= now) {
        state[at] = REPORTED;
        work++;
        report(at, completions);
      }
    }
    while (head < tail && state[(int) head & mask] == REPORTED) {
      head++;
    }
    return work;
  }

  private boolean mayMove(long entry) {
    long flag = transfers.flag(transfer[(int) entry & mask]);
    for (long earlier = head; earlier < entry; earlier++) {
      int at = (int) earlier & mask;
      if (state[at] == MOVING && transfers.flag(transfer[at]) == flag) {
        return false;
      }
    }
    return true;
  }

  private long move(int at, long now) {
    int number = transfer[at];
    long pieces = transfers.pieces(number);
    if (fails[at]) {
      state[at] = DELIVERED;
      done[at] = now;
      return 1;
    }
    long work = 1;
    long until = Math.min(pieces, next[at] + 1 + adversary.below(1 + pieces / 2));
    while (next[at] < until) {
      work += transfers.move(number, (first[at] + next[at]++ * step[at]) % pieces);
    }
    if (next[at] == pieces) {
      transfers.raise(number, epoch[at]);
      state[at] = DELIVERED;
      done[at] = now + adapter.latencyNanos() + adversary.delayNanos();
    } else {
      due[at] = now + adversary.below(4) * adversary.delayNanos() / 8;
    }
    return work;
  }
}
