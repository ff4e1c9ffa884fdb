package org.mkernel.check;

import java.util.Arrays;

/**
 * The processors of a process, shared evenly by the jobs that run. A job ends when the work that
 * each job has received since it began reaches its own; so one number, the work received so far,
 * serves all.
 */
final class Processors {
  /** Rounding of sums of nanoseconds. */
  private static final double TOLERANCE = 1e-3;

  private final int count;
  private final EventQueue running = new EventQueue();
  private int jobs;
  private double received;
  private double since;
  private double busy;

  Processors(int count) {
    this.count = count;
  }

  /** Starts a job that needs some nanoseconds of a processor. */
  void add(double now, int job, double nanos) {
    update(now);
    running.add(received + nanos, job);
    jobs++;
  }

  /** When the next job ends, as things are; infinite when none runs. */
  double next() {
    return jobs == 0
        ? Double.POSITIVE_INFINITY
        : since + Math.max(0, running.firstTime() - received) / rate();
  }

  /** Ends one job that is due, and returns it; −1 when none is. */
  int takeDue(double now) {
    update(now);
    if (jobs == 0 || running.firstTime() > received * (1 + 1e-12) + TOLERANCE) {
      return -1;
    }
    int job = (int) running.firstEvent();
    running.removeFirst();
    jobs--;
    return job;
  }

  /** Nanoseconds of all processors that were used. */
  double busy() {
    return busy;
  }

  private double rate() {
    return jobs <= count ? 1 : (double) count / jobs;
  }

  private void update(double now) {
    double passed = (now - since) * rate();
    busy += passed * jobs;
    received += passed;
    since = now;
  }

  /** A queue of each process. */
  static Processors[] of(int processes, int count) {
    Processors[] all = new Processors[processes];
    Arrays.setAll(all, process -> new Processors(count));
    return all;
  }
}
