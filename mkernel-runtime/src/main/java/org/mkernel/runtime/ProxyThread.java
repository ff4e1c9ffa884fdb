package org.mkernel.runtime;

import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.mkernel.api.Failure;
import org.mkernel.api.PeerLostException;
import org.mkernel.api.spi.Abort;

/**
 * The thread that runs a {@link Proxy}. It starts with the first queue. While transfers are due it
 * spins a little, yields a little and then naps, each time for a quarter of the time that it has
 * waited so far: what comes is late by that at most, and lanes that share its processor lose little
 * to it. When nothing is due it sleeps until an epoch begins.
 */
final class ProxyThread {
  private static final Logger LOG = LogManager.getLogger(ProxyThread.class);

  /** How long {@link #unregister} and {@link #stop} wait; a turn takes a few milliseconds. */
  private static final long BOUND_NANOS = TimeUnit.SECONDS.toNanos(5);

  private static final int SPINS = 20;
  private static final int YIELDS = 100;
  private static final long SHORTEST_NAP_NANOS = TimeUnit.MICROSECONDS.toNanos(20);
  private static final long LONGEST_NAP_NANOS = TimeUnit.MICROSECONDS.toNanos(500);
  private static final long QUIET_PARK_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

  private final ThreadFactory threads;
  private final Abort abort;
  private final Proxy proxy;
  private final Runnable wake = this::wake;
  private volatile @Nullable Thread thread;
  private volatile boolean stopping;

  /**
   * Makes a proxy without queues; no thread runs yet.
   *
   * @param threads makes the thread
   * @param abort what ends all queues
   */
  ProxyThread(ThreadFactory threads, Abort abort) {
    this.threads = threads;
    this.abort = abort;
    this.proxy = new Proxy(abort);
  }

  /** Serves a queue from now on. Any thread may call. */
  synchronized void register(ProxyQueue queue) {
    if (stopping) {
      throw new IllegalStateException("the proxy was stopped");
    }
    queue.onEnter(wake);
    proxy.register(queue);
    if (thread == null) {
      Thread started = threads.newThread(this::run);
      started.setName("mkernel-proxy");
      started.setDaemon(true);
      thread = started;
      started.start();
    }
    wake();
  }

  /**
   * Serves a queue no more. Any thread but the proxy's may call.
   *
   * @return whether the proxy let go of it in time: false means that memory and channel of the
   *     queue must stay
   */
  boolean unregister(ProxyQueue queue) {
    long ticket = proxy.unregister(queue);
    wake();
    Thread running = thread;
    return running == null
        || proxy.awaitTurn(ticket, running.isAlive() ? BOUND_NANOS : 0)
        || !running.isAlive();
  }

  /** Wakes the thread when it sleeps. */
  void wake() {
    LockSupport.unpark(thread);
  }

  /**
   * Ends the thread. Queues stay as they are.
   *
   * @return whether it ended in time
   */
  boolean stop() {
    Thread running;
    synchronized (this) {
      stopping = true;
      running = thread;
    }
    if (running == null) {
      return true;
    }
    LockSupport.unpark(running);
    long start = System.nanoTime();
    boolean interrupted = false;
    while (running.isAlive() && System.nanoTime() - start < BOUND_NANOS) {
      try {
        running.join(TimeUnit.NANOSECONDS.toMillis(BOUND_NANOS));
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
    if (running.isAlive()) {
      LOG.error("the proxy did not stop within {} s", TimeUnit.NANOSECONDS.toSeconds(BOUND_NANOS));
    }
    return !running.isAlive();
  }

  private void run() {
    try {
      int idle = 0;
      long since = 0;
      while (!stopping) {
        idle = proxy.doWork() > 0 ? 0 : idle + 1;
        if (idle == 1) {
          since = System.nanoTime();
        }
        if (idle > 0) {
          rest(idle, since);
        }
      }
    } catch (Throwable e) {
      // Queues handle what they throw; this is the last resort against a proxy that dies unheard.
      abort.set(new PeerLostException("the proxy died: " + e, Failure.UNKNOWN, e));
      throw e;
    }
  }

  @SuppressWarnings("ThreadPriorityCheck") // A hint on the way to sleep; nothing relies on it.
  private void rest(int idle, long since) {
    if (idle <= SPINS) {
      Thread.onSpinWait();
    } else if (idle <= SPINS + YIELDS) {
      Thread.yield();
    } else {
      // An interrupt is not meant for this loop, and would keep it from sleeping.
      var _ = Thread.interrupted();
      LockSupport.parkNanos(this, proxy.isQuiet() ? QUIET_PARK_NANOS : nap(since));
    }
  }

  private static long nap(long since) {
    return Math.clamp((System.nanoTime() - since) / 4, SHORTEST_NAP_NANOS, LONGEST_NAP_NANOS);
  }
}
