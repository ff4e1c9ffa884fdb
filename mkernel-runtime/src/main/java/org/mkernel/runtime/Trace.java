package org.mkernel.runtime;

import java.io.IOException;
import java.io.Writer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.mkernel.api.Failure;
import org.mkernel.api.UnavailableException;
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
    try (Writer out = Files.newBufferedWriter(file.get())) {
      out.write("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
      for (int r = 0; r < topology.size(); r++) {
        out.write(
            "{\"ph\":\"M\",\"pid\":%d,\"name\":\"process_name\",\"args\":{\"name\":\"rank %d on node %d\"}}"
                .formatted(r, r, topology.node(r)));
        out.write(r + 1 < topology.size() || count > 0 ? ",\n" : "\n");
      }
      for (int i = 0; i < count; i++) {
        if (ready[i] > claimed[i]) {
          out.write(events(i, "wait", claimed[i], ready[i]));
          out.write(",\n");
        }
        out.write(events(i, schedule[i].rank(rank[i]).kind(task[i]).name(), ready[i], done[i]));
        out.write(i + 1 < count ? ",\n" : "\n");
      }
      out.write("]}\n");
    } catch (IOException e) {
      throw new UnavailableException(
          "the trace could not be written to %s: %s".formatted(file.get(), e),
          Failure.remedy("choose a file in a folder that is writable and has room"),
          e);
    }
  }

  private String events(int i, String category, long from, long to) {
    String name =
        (category.equals("wait") ? "wait: " : "") + schedule[i].describe(rank[i], task[i]);
    if (lane[i] == PROXY) {
      return side("b", i, category, from, name) + ",\n" + side("e", i, category, to, name);
    }
    return "{\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"cat\":\"%s\",\"name\":\"%s\",\"args\":{\"epoch\":%d}}"
        .formatted(
            rank[i], lane[i], (from - start) / 1e3, (to - from) / 1e3, category, name, epoch[i]);
  }

  /** The beginning or the end of what the proxy does. */
  private String side(String phase, int i, String category, long time, String name) {
    return "{\"ph\":\"%s\",\"pid\":%d,\"tid\":0,\"id\":%d,\"ts\":%.3f,\"cat\":\"proxy %s\",\"name\":\"%s\",\"args\":{\"epoch\":%d}}"
        .formatted(phase, rank[i], i, (time - start) / 1e3, category, "proxy: " + name, epoch[i]);
  }
}
