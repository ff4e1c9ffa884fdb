package org.mkernel.check;

import java.util.Arrays;
import org.mkernel.api.schedule.RankSchedule;
import org.mkernel.api.schedule.Schedule;

/** What touches one buffer of one rank: columns, in the order of their first bytes. */
final class Accesses {
  /** In {@link #part}: the access writes an output, and so follows every wait of its task. */
  static final int WRITE = -1;

  private int size;
  private int writes;
  private int[] task = new int[16];
  private int[] part = new int[16];
  private int[] region = new int[16];
  private RankSchedule[] owner = new RankSchedule[16];
  private long[] start = new long[16];
  private long[] end = new long[16];

  /** All accesses, by rank and buffer. */
  static Accesses[][] of(Schedule schedule, SignalTable signals) {
    int ranks = schedule.topology().size();
    Accesses[][] all = new Accesses[ranks][schedule.buffers().size()];
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
          all[tasks.regionRank(r)][tasks.regionBuffer(r)].add(tasks, global, p, r);
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
      start = Arrays.copyOf(start, grown);
      end = Arrays.copyOf(end, grown);
    }
    task[size] = global;
    part[size] = ofPart;
    region[size] = r;
    owner[size] = tasks;
    start[size] = tasks.regionOffset(r);
    end[size] =
        tasks.regionOffset(r)
            + (tasks.regionRows(r) - 1) * tasks.regionPitch(r)
            + tasks.regionRowBytes(r);
    writes += ofPart == WRITE ? 1 : 0;
    size++;
  }

  int size() {
    return size;
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

  /** Bytes written, those written twice counted twice. */
  long bytesWritten() {
    long sum = 0;
    for (int access = 0; access < size; access++) {
      if (isWrite(access)) {
        sum += owner[access].regionBytes(region[access]);
      }
    }
    return sum;
  }

  /** Hears of two accesses that overlap, at least one of which writes. */
  interface Conflict {
    /**
     * Hears of them.
     *
     * @param a the one
     * @param b the other
     * @return whether to go on
     */
    boolean found(int a, int b);
  }

  /** Sweeps over the buffer: reads are compared with writes, writes with both. */
  void conflicts(Conflict conflict) {
    if (writes == 0) {
      return;
    }
    long[] order = new long[size];
    Integer[] sorted = new Integer[size];
    Arrays.setAll(sorted, i -> i);
    Arrays.sort(sorted, (x, y) -> Long.compare(start[x], start[y]));
    Arrays.setAll(order, i -> sorted[i]);
    Active reads = new Active();
    Active written = new Active();
    for (long at : order) {
      int access = (int) at;
      if (!written.compare(access, conflict)) {
        return;
      }
      if (!isWrite(access)) {
        reads.add(access);
        continue;
      }
      if (!reads.compare(access, conflict)) {
        return;
      }
      written.add(access);
    }
  }

  /** Accesses that may still overlap with the next one. */
  private final class Active {
    private int[] list = new int[16];
    private int count;

    void add(int access) {
      if (count == list.length) {
        list = Arrays.copyOf(list, count * 2);
      }
      list[count++] = access;
    }

    boolean compare(int access, Conflict conflict) {
      int kept = 0;
      boolean goOn = true;
      for (int i = 0; i < count; i++) {
        int other = list[i];
        if (end[other] > start[access]) {
          list[kept++] = other;
          if (goOn && overlap(other, access)) {
            goOn = conflict.found(other, access);
          }
        }
      }
      count = kept;
      return goOn;
    }
  }

  /** Whether two regions, whose bounds overlap, share a byte. */
  private boolean overlap(int a, int b) {
    RankSchedule x = owner[a];
    RankSchedule y = owner[b];
    int r = region[a];
    int s = region[b];
    long pitch = x.regionPitch(r);
    if (x.regionRows(r) == 1 && y.regionRows(s) == 1) {
      return true;
    }
    long left = x.regionOffset(r) % pitch;
    long right = y.regionOffset(s) % pitch;
    if (pitch == y.regionPitch(s)
        && left + x.regionRowBytes(r) <= pitch
        && right + y.regionRowBytes(s) <= pitch) {
      // The same grid: columns must meet, and rows.
      long firstRow = x.regionOffset(r) / pitch;
      long otherRow = y.regionOffset(s) / pitch;
      return left < right + y.regionRowBytes(s)
          && right < left + x.regionRowBytes(r)
          && firstRow < otherRow + y.regionRows(s)
          && otherRow < firstRow + x.regionRows(r);
    }
    return mergeOverlap(x, r, y, s);
  }

  private static boolean mergeOverlap(RankSchedule x, int r, RankSchedule y, int s) {
    long i = 0;
    long j = 0;
    while (i < x.regionRows(r) && j < y.regionRows(s)) {
      long a = x.regionOffset(r) + i * x.regionPitch(r);
      long b = y.regionOffset(s) + j * y.regionPitch(s);
      if (a + x.regionRowBytes(r) <= b) {
        i++;
      } else if (b + y.regionRowBytes(s) <= a) {
        j++;
      } else {
        return true;
      }
    }
    return false;
  }
}
