package org.mkernel.check;

import java.util.Arrays;

/** What is to come, in order of time; of equal times, what was added first comes first. */
final class EventQueue {
  private double[] time = new double[64];
  private long[] order = new long[64];
  private long[] event = new long[64];
  private int size;
  private long added;

  boolean isEmpty() {
    return size == 0;
  }

  double firstTime() {
    return time[0];
  }

  long firstEvent() {
    return event[0];
  }

  void add(double when, long what) {
    if (size == time.length) {
      time = Arrays.copyOf(time, size * 2);
      order = Arrays.copyOf(order, size * 2);
      event = Arrays.copyOf(event, size * 2);
    }
    long number = added++;
    int at = size++;
    while (at > 0) {
      int parent = (at - 1) >>> 1;
      if (time[parent] <= when) {
        break;
      }
      move(parent, at);
      at = parent;
    }
    set(at, when, number, what);
  }

  void removeFirst() {
    int last = --size;
    double when = time[last];
    long number = order[last];
    long what = event[last];
    int at = 0;
    for (int child = 1; child < last; child = 2 * at + 1) {
      if (child + 1 < last && before(time[child + 1], order[child + 1], child)) {
        child++;
      }
      if (before(when, number, child)) {
        break;
      }
      move(child, at);
      at = child;
    }
    set(at, when, number, what);
  }

  private boolean before(double when, long number, int other) {
    return when < time[other] || (when == time[other] && number < order[other]);
  }

  private void move(int from, int to) {
    set(to, time[from], order[from], event[from]);
  }

  private void set(int at, double when, long number, long what) {
    time[at] = when;
    order[at] = number;
    event[at] = what;
  }
}
