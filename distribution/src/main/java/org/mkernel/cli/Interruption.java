package org.mkernel.cli;

import java.io.PrintWriter;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.mkernel.api.MKernel;

/**
 * What a signal to the process does to a run: mkernel is closed, so that lanes and proxies end in
 * order; the run then fails and removes its files; and one line says so. The exit code is the
 * virtual machine's: 128 and the number of the signal.
 */
final class Interruption {
  /** How long a run may take to end; the process ends then, come what may. */
  private static final long GRACE_SECONDS = 5;

  private final PrintWriter err;
  private volatile boolean happened;

  Interruption(PrintWriter err) {
    this.err = err;
  }

  /** Whether the process is ending: whatever fails now fails because of that. */
  boolean happened() {
    return happened;
  }

  /**
   * Guards a run until the guard is closed.
   *
   * @param mkernel what to close on a signal
   * @param what is stopped then, in words
   */
  Guard guard(MKernel mkernel, String what) {
    Guard guard = new Guard(mkernel, what);
    Runtime.getRuntime().addShutdownHook(guard.hook);
    return guard;
  }

  /** A run that a signal would end. */
  final class Guard implements AutoCloseable {
    private final MKernel mkernel;
    private final String what;
    private final CountDownLatch ended = new CountDownLatch(1);
    private final Thread hook = new Thread(this::interrupt, "mkernel-interrupted");
    private volatile boolean completed;

    private Guard(MKernel mkernel, String what) {
      this.mkernel = mkernel;
      this.what = what;
    }

    /** Says that the run did all that it was to do. */
    void completed() {
      completed = true;
    }

    private void interrupt() {
      happened = true;
      mkernel.close();
      boolean inTime = false;
      try {
        inTime = ended.await(GRACE_SECONDS, TimeUnit.SECONDS);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
      if (!completed) {
        err.printf(
            "mkernel: interrupted: %s%s%n",
            what, inTime ? "" : "; it did not end within %d s".formatted(GRACE_SECONDS));
      }
    }

    @Override
    public void close() {
      ended.countDown();
      if (!happened) {
        try {
          Runtime.getRuntime().removeShutdownHook(hook);
        } catch (IllegalStateException e) {
          // The process is ending: the hook finds the run ended.
        }
      }
    }
  }
}
