package org.mkernel.transport.tcp;

import java.io.IOException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.util.List;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/** The thread that reads all connections of a rank. It sleeps while nothing comes. */
final class Receiver implements AutoCloseable {
  private static final long TURN_BYTES = 4 << 20;
  private static final long SELECT_MILLIS = 1000;
  private static final long BOUND_NANOS = TimeUnit.SECONDS.toNanos(5);
  private static final long LOOK_AGAIN_NANOS = 20_000;

  private final Selector selector;
  private final LostPeers lost;
  private final AtomicLong turns = new AtomicLong();
  private final Thread thread;
  private volatile boolean closing;

  Receiver(int rank, List<ReceiveStream> streams, LostPeers lost, ThreadFactory threads)
      throws IOException {
    this.lost = lost;
    this.selector = Selector.open();
    for (ReceiveStream stream : streams) {
      stream.socket().configureBlocking(false);
      stream.socket().register(selector, SelectionKey.OP_READ, stream);
    }
    this.thread = threads.newThread(this::run);
    thread.setName("mkernel-tcp-" + rank);
    thread.setDaemon(true);
  }

  void start() {
    thread.start();
  }

  private void run() {
    try {
      while (!closing) {
        var _ = selector.select(this::serve, SELECT_MILLIS);
        turns.incrementAndGet();
      }
    } catch (IOException | RuntimeException e) {
      lost.all("the receiver died: " + e);
    }
  }

  private void serve(SelectionKey key) {
    ReceiveStream stream = (ReceiveStream) key.attachment();
    try {
      stream.receive(TURN_BYTES);
    } catch (IOException e) {
      key.cancel();
      lost.add(stream.peer(), String.valueOf(e.getMessage()));
    }
  }

  /**
   * Waits until whatever was being read when this was called is read.
   *
   * @return whether it is, within five seconds
   */
  boolean awaitTurn() {
    long ticket = turns.get() + 2;
    long start = System.nanoTime();
    while (turns.get() < ticket && thread.isAlive()) {
      if (System.nanoTime() - start > BOUND_NANOS) {
        return false;
      }
      selector.wakeup();
      LockSupport.parkNanos(LOOK_AGAIN_NANOS);
    }
    return true;
  }

  @Override
  public void close() {
    closing = true;
    selector.wakeup();
    boolean interrupted = false;
    long start = System.nanoTime();
    while (thread.isAlive() && System.nanoTime() - start < BOUND_NANOS) {
      try {
        thread.join(TimeUnit.NANOSECONDS.toMillis(BOUND_NANOS));
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
    try {
      selector.close();
    } catch (IOException e) {
      lost.all("the selector did not close: " + e);
    }
  }
}
