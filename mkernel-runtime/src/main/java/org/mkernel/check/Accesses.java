package org.mkernel.check;

import java.util.Arrays;
import org.mkernel.api.schedule.BufferSpec;
import org.mkernel.api.schedule.RankSchedule;
import org.mkernel.api.schedule.Schedule;

/** What touches one buffer of one rank, in columns. */
final class Accesses {
  /** In {@link #part}: the access writes an output, and so follows every wait of its task. */
  static final int WRITE = -1;

  private int size;
  private int writes;
  private int[] task = new int[16];
  private int[] part = new int[16];
  private int[] region = new int[16];
  private RankSchedule[] owner = new RankSchedule[16];

  /** All accesses, by rank and buffer. Inputs are left out: nothing writes them. */
  static Accesses[][] of(Schedule schedule, SignalTable signals) {
    int ranks = schedule.topology().size();
    boolean[] input = new boolean[schedule.buffers().size()];
    for (BufferSpec buffer : schedule.buffers()) {
      input[buffer.index()] = buffer.use() == BufferSpec.Use.INPUT;
    }
    Accesses[][] all = new Accesses[ranks][input.length];
    for (Accesses[] row : all) {
      Arrays.setAll(row, b -> new Accesses());
    }
    for (int rank = 0; rank < ranks; rank++) {
      RankSchedule tasks = schedule.rank(rank);
      for (int t = 0; t < tasks.tasks(); t++) {
        int global = signals.taskBase(rank) + t;
        int parts = tasks.firstPart(tasks.firstStream(t + 1));
        for (int p = tasks.firstPart(tasks.firstStream(t)); p < parts; p++) {
          int r = tasks.partRegion(p);
          if (!input[tasks.regionBuffer(r)]) {
            all[tasks.regionRank(r)][tasks.regionBuffer(r)].add(tasks, global, p, r);
          }
        }
        for (int o = tasks.firstOutput(t); o < tasks.firstOutput(t + 1); o++) {
          int r = tasks.output(o);
          all[tasks.regionRank(r)][tasks.regionBuffer(r)].add(tasks, global, WRITE, r);
        }
      }
    }
    return all;
  }

  private void add(RankSchedule tasks, int global, int ofPart, int r) {
    if (size == task.length) {
      int grown = size * 2;
      task = Arrays.copyOf(task, grown);
      part = Arrays.copyOf(part, grown);
      region = Arrays.copyOf(region, grown);
      owner = Arrays.copyOf(owner, grown);
    }
    task[size] = global;
    part[size] = ofPart;
    region[size] = r;
    owner[size] = tasks;
    writes += ofPart == WRITE ? 1 : 0;
    size++;
  }

  int size() {
    return size;
  }

  int writes() {
    return writes;
  }

  int task(int access) {
    return task[access];
  }

  /** The part of its task that is read, or {@link #WRITE}. */
  int part(int access) {
    return part[access];
  }

  boolean isWrite(int access) {
    return part[access] == WRITE;
  }

  long bytes(int access) {
    return owner[access].regionBytes(region[access]);
  }

  /** Whether the region of an access has no gaps. */
  boolean isRun(int access) {
    return rowBytes(access) == pitch(access) || owner[access].regionRows(region[access]) == 1;
  }

  /** Where the region starts, in bytes. */
  long start(int access) {
    return owner[access].regionOffset(region[access]);
  }

  /** Rows, after regions without gaps became one row. */
  long rows(int access) {
    return isRun(access) ? 1 : owner[access].regionRows(region[access]);
  }

  /** Bytes of a row, likewise. */
  long width(int access) {
    return isRun(access) ? bytes(access) : rowBytes(access);
  }

  /** Bytes from a row to the next. */
  long pitch(int access) {
    return owner[access].regionPitch(region[access]);
  }

  private long rowBytes(int access) {
    return owner[access].regionRowBytes(region[access]);
  }

  /** Bytes that two accesses share, found by walking over the rows of both. */
  long sharedBytes(int a, int b) {
    long shared = 0;
    long i = 0;
    long j = 0;
    while (i < rows(a) && j < rows(b)) {
      long x = start(a) + i * pitch(a);
      long y = start(b) + j * pitch(b);
      shared += Math.max(0, Math.min(x + width(a), y + width(b)) - Math.max(x, y));
      if (x + width(a) <= y + width(b)) {
        i++;
      } else {
        j++;
      }
    }
    return shared;
  }

  /** Bytes written, those written twice counted twice. */
  long bytesWritten() {
    long sum = 0;
    for (int access = 0; access < size; access++) {
      if (isWrite(access)) {
        sum += bytes(access);
      }
    }
    return sum;
  }
}
