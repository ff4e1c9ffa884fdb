package org.mkernel.transport.tcp;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;

/**
 * Peers whose connection has failed. They are reported a little later: when a world ends because of
 * another rank, the words about that rank come first.
 */
final class LostPeers {
  private static final long GRACE_NANOS = TimeUnit.MILLISECONDS.toNanos(400);

  private record Loss(String reason, long when) {}

  private final AtomicReferenceArray<@Nullable Loss> losses;
  private volatile boolean any;

  LostPeers(int size) {
    losses = new AtomicReferenceArray<>(size);
  }

  void add(int peer, String reason) {
    boolean _ = losses.compareAndSet(peer, null, new Loss(reason, System.nanoTime()));
    any = true;
  }

  void all(String reason) {
    for (int peer = 0; peer < losses.length(); peer++) {
      add(peer, reason);
    }
  }

  boolean any() {
    return any;
  }

  boolean isLost(int peer) {
    return any && losses.get(peer) != null;
  }

  /** Why a peer is lost; null while it is not, or not for long enough. */
  @Nullable String reason(int peer) {
    Loss loss = losses.get(peer);
    return loss == null || System.nanoTime() - loss.when() < GRACE_NANOS ? null : loss.reason();
  }
}
