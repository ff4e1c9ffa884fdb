package org.mkernel.runtime;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.mkernel.api.Failure;
import org.mkernel.api.MKernelException;
import org.mkernel.api.PeerLostException;
import org.mkernel.api.spi.Abort;
import org.mkernel.api.spi.Exchange;

/** The exchange of ranks that live in one process: rounds, each bounded in time. */
final class LocalGroup {
  private static final long LOOK_AT_ABORT_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

  private final int size;
  private final long waitNanos;
  private final Abort abort;
  private final ReentrantLock lock = new ReentrantLock();
  private final Condition changed = lock.newCondition();
  private final byte[] @Nullable [] gathering;
  private List<byte[]> result = List.of();
  private int arrived;
  private long round;

  LocalGroup(int size, long waitNanos, Abort abort) {
    this.size = size;
    this.waitNanos = waitNanos;
    this.abort = abort;
    this.gathering = new byte[size][];
  }

  Exchange exchange(int rank) {
    return contribution -> allGather(rank, contribution);
  }

  /** Wakes ranks that wait here, after the abort word was set. */
  void wake() {
    lock.lock();
    try {
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  private List<byte[]> allGather(int rank, byte[] contribution) {
    lock.lock();
    try {
      throwIfAborted();
      long mine = round;
      gathering[rank] = contribution.clone();
      if (++arrived == size) {
        List<byte[]> all = new ArrayList<>(size);
        for (byte[] part : gathering) {
          all.add(part == null ? new byte[0] : part);
        }
        result = List.copyOf(all);
        Arrays.fill(gathering, null);
        arrived = 0;
        round++;
        changed.signalAll();
        return result;
      }
      long deadline = System.nanoTime() + waitNanos;
      while (round == mine) {
        throwIfAborted();
        long left = deadline - System.nanoTime();
        if (left <= 0) {
          throw expired(rank);
        }
        long _ = changed.awaitNanos(Math.min(left, LOOK_AT_ABORT_NANOS));
      }
      // The next round can't complete before this rank takes part in it: the result still stands.
      return result;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      PeerLostException failure =
          new PeerLostException(
              "rank %d was interrupted while it waited for the others".formatted(rank),
              Failure.UNKNOWN.withRank(rank),
              e);
      abort.set(failure);
      changed.signalAll();
      throw failure;
    } finally {
      lock.unlock();
    }
  }

  private void throwIfAborted() {
    abort
        .cause()
        .ifPresent(cause -> {
          throw cause.copy();
        });
  }

  private MKernelException expired(int rank) {
    List<Integer> missing = new ArrayList<>();
    for (int peer = 0; peer < size; peer++) {
      if (gathering[peer] == null) {
        missing.add(peer);
      }
    }
    PeerLostException failure =
        new PeerLostException(
            "rank %d waited %.1f s for the others to take part; missing are ranks %s"
                .formatted(rank, waitNanos / 1e9, missing),
            Failure.remedy(
                    "every rank must make the same collective calls (join, prepare) in the same"
                        + " order; raise the option deadline if they are only slow")
                .withRank(rank)
                .withPeer(missing.getFirst()));
    abort.set(failure);
    changed.signalAll();
    return failure;
  }
}
