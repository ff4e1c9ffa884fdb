package org.mkernel.runtime;

import java.nio.file.Path;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.schedule.Topology;

/**
 * What ran when, in columns that were allocated before; written as Chrome trace events, which
 * Perfetto reads: a process per rank, a row per lane, a wait as an event of its own before its
 * task; what the proxy sends as asynchronous events, for transfers overlap.
 */
final class Trace {
  private static final Logger LOG = LogManager.getLogger(Trace.class);
  private static final int CAPACITY = 1 << 18;

  /** Instead of a lane: the proxy. */
  private static final int PROXY = -1;

  private final Optional<Path> file;
  private final int capacity;
  private final AtomicInteger next = new AtomicInteger();
  private final long start = System.nanoTime();
  private final int[] rank;
  private final int[] lane;
  private final int[] task;
  private final long[] epoch;
  private final long[] claimed;
  private final long[] ready;
  private final long[] done;
  private final Schedule[] schedule;

  private Trace(Optional<Path> file) {
    this.file = file;
    this.capacity = file.isPresent() ? CAPACITY : 0;
    rank = new int[capacity];
    lane = new int[capacity];
    task = new int[capacity];
    epoch = new long[capacity];
    claimed = new long[capacity];
    ready = new long[capacity];
    done = new long[capacity];
    schedule = new Schedule[capacity];
  }

  static Trace of(Optional<String> file) {
    return new Trace(file.map(Path::of));
  }

  boolean isOn() {
    return capacity > 0;
  }

  void add(
      Schedule schedule,
      int rank,
      int lane,
      int task,
      long epoch,
      long claimed,
      long ready,
      long done) {
    int at = next.getAndUpdate(n -> n < capacity ? n + 1 : n);
    if (at < capacity) {
      this.schedule[at] = schedule;
      this.rank[at] = rank;
      this.lane[at] = lane;
      this.task[at] = task;
      this.epoch[at] = epoch;
      this.claimed[at] = claimed;
      this.ready[at] = ready;
      this.done[at] = done;
    }
  }

  /** A transfer of the proxy: its command was taken, it was posted, it was complete. */
  void addTransfer(
      Schedule schedule, int rank, int task, long epoch, long taken, long posted, long done) {
    add(schedule, rank, PROXY, task, epoch, taken, posted, done);
  }

  /** Writes the file, if one was asked for. Lanes have left. */
  void write(Topology topology) {
    if (file.isEmpty()) {
      return;
    }
    int count = Math.min(next.get(), capacity);
    if (count == capacity) {
      LOG.warn("the trace is full: only its first {} tasks are written", capacity);
    }
    TraceEvents.write(
        file.get(),
        topology,
        events -> {
          for (int i = 0; i < count; i++) {
            double from = micros(claimed[i]);
            double at = micros(ready[i]);
            double to = micros(done[i]);
            if (lane[i] == PROXY) {
              events.transfer(schedule[i], rank[i], task[i], epoch[i], i, from, at, to);
            } else {
              events.task(schedule[i], rank[i], lane[i], task[i], epoch[i], from, at, to);
            }
          }
        });
  }

  private double micros(long time) {
    return (time - start) / 1e3;
  }
}
