package org.mkernel.runtime;

import org.mkernel.api.spi.Wire;

/** What a channel has in flight to one peer: a ring of columns. Delivers when it is asked to. */
abstract sealed class EmulatedQueuePair
    permits OrderedEmulatedQueuePair, AdversarialEmulatedQueuePair {
  /** What ibverbs calls {@code IBV_WC_RETRY_EXC_ERR}. */
  private static final long RETRY_EXCEEDED = 12;

  private static final String REMEDY = "the fault is emulated: unset the option emulated.fault";

  final EmulatedAdapter adapter;
  final EmulatedTransfers transfers;
  final int[] transfer;
  final long[] epoch;
  final long[] due;
  final long[] done;
  final long[] next;
  final boolean[] fails;
  final int mask;
  long head;
  long tail;
  private final int depth;

  EmulatedQueuePair(EmulatedAdapter adapter, EmulatedTransfers transfers, int depth) {
    int size = Integer.highestOneBit(Math.max(1, 2 * depth - 1));
    this.adapter = adapter;
    this.transfers = transfers;
    this.depth = depth;
    this.mask = size - 1;
    this.transfer = new int[size];
    this.epoch = new long[size];
    this.due = new long[size];
    this.done = new long[size];
    this.next = new long[size];
    this.fails = new boolean[size];
  }

  /** Takes a transfer, or answers false when the queue is full. */
  final boolean post(int number, long value) {
    if (tail - head == depth) {
      return false;
    }
    int at = (int) tail & mask;
    int peer = transfers.peer(number);
    transfer[at] = number;
    epoch[at] = value;
    due[at] = adapter.arrival(peer, transfers.bytes(number), adapter.now());
    fails[at] = adapter.failsLast(peer);
    next[at] = 0;
    posted(at);
    tail++;
    return true;
  }

  /** A slot was filled. */
  abstract void posted(int at);

  /**
   * Moves what is due and reports what is done.
   *
   * @param now the adapter's time
   * @param budget about how many bytes to move at most
   * @param completions told of each completion
   * @return bytes moved and completions reported, 0 when nothing happened
   */
  abstract long progress(long now, long budget, Wire.Completions completions);

  final boolean isEmpty() {
    return head == tail;
  }

  final void report(int at, Wire.Completions completions) {
    if (fails[at]) {
      completions.failed(
          transfer[at], "transport retry counter exceeded (emulated)", RETRY_EXCEEDED, REMEDY);
    } else if (adapter.takesCompletion()) {
      completions.completed(transfer[at]);
    } else {
      completions.failed(transfer[at], "completion queue overrun (emulated)", 0, REMEDY);
    }
  }
}
