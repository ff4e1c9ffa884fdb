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
  private final double together;
  private final EventQueue running = new EventQueue();
  private int jobs;
  private double received;
  private double since;
  private double busy;

  Processors(Machine.Host host) {
    count = host.processors();
    together = host.together();
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
        : since + Math.max(0, running.firstTime() - received) / rate(jobs);
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

  /** How long the jobs would take at the best number of them at once. */
  double busy() {
    double most = 1;
    for (int n = 2; n <= count; n++) {
      most = Math.max(most, n * rate(n));
    }
    return busy / most;
  }

  /** How fast each of some jobs goes, of its speed alone; between one and all, by interpolation. */
  private double rate(int of) {
    if (of <= 1) {
      return 1;
    }
    return of <= count
        ? 1 - (1 - together) * (of - 1) / (count - 1)
        : (count == 1 ? 1 : together) * count / of;
  }

  private void update(double now) {
    double passed = (now - since) * rate(jobs);
    busy += passed * jobs;
    received += passed;
    since = now;
  }

  /** A queue of each process. */
  static Processors[] of(int processes, Machine.Host host) {
    Processors[] all = new Processors[processes];
    Arrays.setAll(all, process -> new Processors(host));
    return all;
  }
}
