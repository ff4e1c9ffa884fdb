package org.mkernel.runtime;

import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.mkernel.api.spi.Wire;

/** The transfers of one operation on one rank. Bytes move when the proxy polls. */
final class EmulatedChannel implements Wire.Channel {
  /** How many bytes one poll moves, so that commands do not wait long behind bytes. */
  private static final long POLL_BYTES = 1 << 20;

  private final EmulatedAdapter adapter;
  private final EmulatedTransfers transfers;
  private final EmulatedQueuePair[] pairs;
  private final int[] pairOfPeer;
  private final Counter counter = new Counter();
  private int nextPair;
  private volatile boolean stopped;

  EmulatedChannel(EmulatedAdapter adapter, EmulatedTransfers transfers, int depth, long seed) {
    this.adapter = adapter;
    this.transfers = transfers;
    int lastPeer = -1;
    for (int number = 0; number < transfers.count(); number++) {
      lastPeer = Math.max(lastPeer, transfers.peer(number));
    }
    this.pairOfPeer = new int[lastPeer + 1];
    List<EmulatedQueuePair> made = new ArrayList<>();
    for (int number = 0; number < transfers.count(); number++) {
      int peer = transfers.peer(number);
      if (pairOfPeer[peer] == 0) {
        made.add(pair(depth, seed, peer));
        pairOfPeer[peer] = made.size();
      }
    }
    this.pairs = made.toArray(EmulatedQueuePair[]::new);
  }

  private EmulatedQueuePair pair(int depth, long seed, int peer) {
    return seed == 0
        ? new OrderedEmulatedQueuePair(adapter, transfers, depth)
        : new AdversarialEmulatedQueuePair(
            adapter, transfers, depth, new EmulatedAdversary(seed * 65537 + peer));
  }

  @Override
  public boolean post(int transfer, long epoch) {
    return !stopped && pairs[pairOfPeer[transfers.peer(transfer)] - 1].post(transfer, epoch);
  }

  @Override
  public int poll(Wire.Completions completions) {
    if (stopped || pairs.length == 0) {
      return 0;
    }
    counter.start(completions);
    long now = adapter.now();
    long budget = POLL_BYTES;
    int first = nextPair;
    nextPair = first + 1 == pairs.length ? 0 : first + 1;
    for (int i = 0; i < pairs.length && budget > 0 && !stopped; i++) {
      EmulatedQueuePair pair = pairs[(first + i) % pairs.length];
      if (!pair.isEmpty()) {
        budget -= pair.progress(now, budget, counter);
      }
    }
    return counter.count;
  }

  @Override
  public void abort() {
    stopped = true;
  }

  @Override
  public void close() {
    stopped = true;
  }

  /** Counts what it passes on. */
  private static final class Counter implements Wire.Completions {
    private Wire.@Nullable Completions target;
    private int count;

    void start(Wire.Completions completions) {
      target = completions;
      count = 0;
    }

    @Override
    public void completed(int transfer) {
      count++;
      if (target != null) {
        target.completed(transfer);
      }
    }

    @Override
    public void failed(int transfer, String reason, long nativeCode, String remedy) {
      count++;
      if (target != null) {
        target.failed(transfer, reason, nativeCode, remedy);
      }
    }
  }
}
