package org.mkernel.runtime;

import org.mkernel.api.spi.Wire;

/** A reliable connection: transfers arrive and complete in the order in which they were posted. */
final class OrderedEmulatedQueuePair extends EmulatedQueuePair {
  private long undelivered;

  OrderedEmulatedQueuePair(EmulatedAdapter adapter, EmulatedTransfers transfers, int depth) {
    super(adapter, transfers, depth);
  }

  @Override
  void posted(int at) {
    // Nothing beyond the order.
  }

  @Override
  long progress(long now, long budget, Wire.Completions completions) {
    long work = 0;
    while (undelivered < tail && work < budget) {
      int at = (int) undelivered & mask;
      if (due[at] > now) {
        break;
      }
      work += deliver(at, budget - work);
      if (fails[at] || next[at] == transfers.pieces(transfer[at])) {
        done[at] = fails[at] ? now : now + adapter.latencyNanos();
        undelivered++;
      }
    }
    while (head < undelivered && done[(int) head & mask] <= now) {
      int at = (int) head & mask;
      head++;
      work++;
      report(at, completions);
    }
    return work;
  }

  private long deliver(int at, long budget) {
    if (fails[at]) {
      return 1;
    }
    int number = transfer[at];
    long pieces = transfers.pieces(number);
    long moved = 1;
    while (next[at] < pieces && moved < budget) {
      moved += transfers.move(number, next[at]++);
    }
    if (next[at] == pieces) {
      transfers.raise(number, epoch[at]);
    }
    return moved;
  }
}
