package org.mkernel.runtime;

import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;
import org.mkernel.api.Failure;
import org.mkernel.api.MKernelException;
import org.mkernel.api.PeerLostException;
import org.mkernel.api.spi.Abort;
import org.mkernel.api.spi.Exchange;
import org.mkernel.runtime.join.Membership;

/** The ranks of a world in one process: they exchange in rounds, each bounded in time. */
final class LocalGroup implements Group {
  private static final int KEY_BYTES = 32;
  private static final long LOOK_AT_ABORT_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

  private final int size;
  private final long waitNanos;
  private final Abort abort;
  private final IntFunction<List<Optional<Progress>>> progress;
  private final Map<String, String> options;
  private final ReentrantLock lock = new ReentrantLock();
  private final Condition changed = lock.newCondition();
  private final byte[] @Nullable [] gathering;
  private List<byte[]> result = List.of();
  private int arrived;
  private long round;

  LocalGroup(
      int size, long waitNanos, Abort abort, IntFunction<List<Optional<Progress>>> progress) {
    this.progress = progress;
    byte[] key = new byte[KEY_BYTES];
    new SecureRandom().nextBytes(key);
    this.options =
        Map.of(
            "world-key",
            HexFormat.of().formatHex(key),
            "world-address",
            "127.0.0.1",
            "world-loopback",
            "true");
    this.size = size;
    this.waitNanos = waitNanos;
    this.abort = abort;
    this.gathering = new byte[size][];
  }

  @Override
  public Exchange exchange(int rank) {
    return contribution -> allGather(rank, contribution);
  }

  @Override
  public List<Optional<Progress>> progress(int operation) {
    return progress.apply(operation);
  }

  @Override
  public Optional<Membership> meetParts(List<int[]> parts) {
    return Optional.empty();
  }

  @Override
  public Map<String, String> options() {
    return options;
  }

  @Override
  public void leave() {
    // All ranks end together.
  }

  @Override
  public void close() {
    // Nothing is held.
  }

  @Override
  public void spread(MKernelException cause) {
    // All see the abort word; those that wait here must be woken.
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
