package org.mkernel.runtime;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.mkernel.api.spi.Abort;

/**
 * Serves the queues of many ranks and operations in turns. One thread calls {@link #doWork}; others
 * add and remove queues.
 */
final class Proxy {
  private static final long LOOK_AGAIN_NANOS = 20_000;

  private final Abort abort;
  private volatile ProxyQueue[] queues = {};
  private final AtomicLong turns = new AtomicLong();

  Proxy(Abort abort) {
    this.abort = abort;
  }

  /**
   * One turn.
   *
   * @return how much was done, 0 when there was nothing to do
   */
  int doWork() {
    int work = 0;
    for (ProxyQueue queue : queues) {
      work += queue.doWork(abort);
    }
    turns.incrementAndGet();
    return work;
  }

  /** Whether no queue has anything due. */
  boolean isQuiet() {
    for (ProxyQueue queue : queues) {
      if (!queue.isQuiet()) {
        return false;
      }
    }
    return true;
  }

  synchronized void register(ProxyQueue queue) {
    List<ProxyQueue> all = new ArrayList<>(List.of(queues));
    all.add(queue);
    queues = all.toArray(ProxyQueue[]::new);
  }

  /**
   * Removes a queue. The turn that runs now may still touch it.
   *
   * @return a ticket for {@link #awaitTurn}
   */
  synchronized long unregister(ProxyQueue queue) {
    List<ProxyQueue> all = new ArrayList<>(List.of(queues));
    all.remove(queue);
    queues = all.toArray(ProxyQueue[]::new);
    return turns.get() + 1;
  }

  /**
   * Waits until a turn has ended.
   *
   * @param ticket which
   * @param nanos how long at most
   * @return whether it has
   */
  boolean awaitTurn(long ticket, long nanos) {
    long start = System.nanoTime();
    while (turns.get() < ticket) {
      if (System.nanoTime() - start > nanos) {
        return false;
      }
      LockSupport.parkNanos(LOOK_AGAIN_NANOS);
    }
    return true;
  }
}
