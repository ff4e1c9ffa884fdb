package org.mkernel.check;

import java.util.Arrays;

/**
 * Finds accesses of one buffer that share bytes, at least one of which writes. Regions become
 * rectangles on the grid that most of them lie on, rows against bytes of a row; the sweep goes
 * along the side on which fewer rectangles meet, so that neither one tall nor one wide row of tiles
 * costs more than its conflicts. What does not fit the grid goes in by a rectangle around it, and
 * is compared row by row.
 */
final class Sweep {
  /** Hears of two accesses that share bytes. */
  @FunctionalInterface
  interface Conflict {
    /**
     * Hears of them.
     *
     * @param a the one
     * @param b the other
     * @param bytes how many they share
     * @return whether to go on
     */
    boolean found(int a, int b, long bytes);
  }

  private final Accesses accesses;
  private final Conflict conflict;

  /** Whether the rectangle is the region itself. */
  private final boolean[] exact;

  private final Axis rows;
  private final Axis columns;
  private Axis along;
  private Axis across;

  private Sweep(Accesses accesses, Conflict conflict) {
    this.accesses = accesses;
    this.conflict = conflict;
    int size = accesses.size();
    exact = new boolean[size];
    rows = new Axis(size);
    columns = new Axis(size);
    long grid = grid();
    for (int access = 0; access < size; access++) {
      place(access, grid);
    }
    boolean byRows = rows.crowd() <= columns.crowd();
    along = byRows ? rows : columns;
    across = byRows ? columns : rows;
  }

  /** Reports every conflict of a buffer, until told to stop. */
  static void over(Accesses accesses, Conflict conflict) {
    if (accesses.writes() > 0) {
      new Sweep(accesses, conflict).run();
    }
  }

  /** The pitch of most regions with gaps, by majority vote. */
  private long grid() {
    long candidate = Long.MAX_VALUE;
    int votes = 0;
    for (int access = 0; access < accesses.size(); access++) {
      if (!accesses.isRun(access)) {
        if (votes == 0) {
          candidate = accesses.pitch(access);
        }
        votes += candidate == accesses.pitch(access) ? 1 : -1;
      }
    }
    return candidate;
  }

  private void place(int access, long grid) {
    long start = accesses.start(access);
    long width = accesses.width(access);
    long column = start % grid;
    long row = start / grid;
    long count = accesses.rows(access);
    if (width <= grid - column && (count == 1 || accesses.pitch(access) == grid)) {
      exact[access] = true;
      rows.set(access, row, row + count);
      columns.set(access, column, column + width);
      return;
    }
    // Whole rows, or what does not fit.
    exact[access] = count == 1 && column == 0 && width % grid == 0;
    long end = start + (count - 1) * accesses.pitch(access) + width;
    rows.set(access, row, (end - 1) / grid + 1);
    columns.set(access, 0, grid);
  }

  private void run() {
    Active reads = new Active();
    Active writes = new Active();
    for (int access : IndexSort.by(along.low, accesses.size())) {
      boolean isWrite = accesses.isWrite(access);
      if (!writes.compare(access) || (isWrite && !reads.compare(access))) {
        return;
      }
      (isWrite ? writes : reads).add(access);
    }
  }

  private boolean meet(int a, int b) {
    if (across.low[a] >= across.high[b] || across.low[b] >= across.high[a]) {
      return true;
    }
    long shared =
        exact[a] && exact[b]
            ? rows.shared(a, b) * columns.shared(a, b)
            : accesses.sharedBytes(a, b);
    return shared == 0 || conflict.found(a, b, shared);
  }

  /** One side of the rectangles. */
  private static final class Axis {
    final long[] low;
    final long[] high;

    Axis(int size) {
      low = new long[size];
      high = new long[size];
    }

    void set(int access, long from, long to) {
      low[access] = from;
      high[access] = to;
    }

    long shared(int a, int b) {
      return Math.min(high[a], high[b]) - Math.max(low[a], low[b]);
    }

    /** How many rectangles a line across meets, on average. */
    double crowd() {
      double sum = 0;
      double end = 1;
      for (int i = 0; i < low.length; i++) {
        sum += (double) (high[i] - low[i]);
        end = Math.max(end, (double) high[i]);
      }
      return sum / end;
    }
  }

  /** Accesses that may still meet the next one. */
  private final class Active {
    private int[] list = new int[16];
    private int count;

    void add(int access) {
      if (count == list.length) {
        list = Arrays.copyOf(list, count * 2);
      }
      list[count++] = access;
    }

    boolean compare(int access) {
      int kept = 0;
      boolean goOn = true;
      for (int i = 0; i < count && goOn; i++) {
        int other = list[i];
        if (along.high[other] > along.low[access]) {
          list[kept++] = other;
          goOn = meet(other, access);
        }
      }
      count = kept;
      return goOn;
    }
  }
}
