package org.mkernel.collectives;

import java.util.Map;
import java.util.function.Consumer;
import org.mkernel.api.Activation;
import org.mkernel.api.UsageException;
import org.mkernel.api.schedule.Kernel;
import org.mkernel.api.schedule.ScheduleBuilder;
import org.mkernel.api.spi.Problem;

/** The product that operators share: rows of A times B, tile by tile. */
final class GemmTiles {
  /** Tiles of all ranks together. A schedule costs about 200 bytes for each. */
  private static final long MAX_TILES = 1L << 24;

  /** Rows of tiles that are computed together where C is wide; the best on an H200. */
  private static final int WIDE_GROUP = 16;

  private static final int NARROW_GROUP = 8;

  /** Tiles side by side from which on C is wide. */
  private static final int WIDE = 16;

  private final ScheduleBuilder builder;
  private final Right right;
  private final long n;
  private final long k;
  private final long elementBytes;
  private final long tileRows;
  private final long tileColumns;
  private final int kernel;

  /**
   * What rows are multiplied with, and what follows.
   *
   * @param b the buffer of B
   * @param transposed whether it is N × K
   * @param bias a buffer of one row that is added, or −1
   * @param activation what is applied last
   */
  record Right(int b, boolean transposed, int bias, Activation activation) {
    boolean biased() {
      return bias >= 0;
    }
  }

  /**
   * Sizes tiles.
   *
   * @param rows rows that tiles never span the chunks of
   * @throws UsageException when there are too many tiles
   */
  GemmTiles(
      ScheduleBuilder builder, Problem problem, RowSharding rows, long chunkRows, Right right) {
    this.builder = builder;
    this.right = right;
    this.n = problem.size("n");
    this.k = problem.size("k");
    this.elementBytes = problem.dtype().bytes();
    this.tileRows = Tuning.tileRows(problem, chunkRows);
    this.tileColumns = Tuning.tileColumns(problem, n);
    requireFewTiles(rows, chunkRows);
    this.kernel =
        builder.kernel(
            new Kernel(
                Kernel.GEMM,
                Map.of(
                    Kernel.TRANSPOSE_B, Boolean.toString(right.transposed),
                    Kernel.BIAS, Boolean.toString(right.biased()),
                    Kernel.ACTIVATION, right.activation.label())));
  }

  private void requireFewTiles(RowSharding rows, long chunkRows) {
    int ranks = rows.ranks();
    double chunks = Math.ceilDiv(rows.block(), chunkRows);
    double down = ranks * chunks * Math.ceilDiv(chunkRows, tileRows);
    double tiles = ranks * down * Math.ceilDiv(n, tileColumns);
    if (tiles > MAX_TILES) {
      throw new UsageException(
          ("tiles of %d x %d cut C of %d ranks into about %.0f tiles; at most %d are possible:"
                  + " raise %s, %s or %s")
              .formatted(
                  tileRows,
                  tileColumns,
                  ranks,
                  tiles,
                  MAX_TILES,
                  Tuning.TILE_ROWS.name(),
                  Tuning.TILE_COLUMNS.name(),
                  Tuning.CHUNK_ROWS.name()));
    }
  }

  private int panels() {
    return (int) Math.ceilDiv(n, tileColumns);
  }

  /** Whether so many rows are whole tiles. */
  boolean fill(long rows) {
    return rows % tileRows == 0;
  }

  /** How many tiles a chunk of so many rows has. */
  int count(long rows) {
    return Math.toIntExact(Math.ceilDiv(rows, tileRows) * panels());
  }

  OnRank on(int rank) {
    return new OnRank(rank);
  }

  /** The tiles of one rank. Panels of B and of the bias are written down once for all of them. */
  final class OnRank {
    private final int rank;
    private final ScheduleBuilder.RankBuilder tasks;
    private final int[] panelOfB;
    private final int[] panelOfBias;

    private OnRank(int rank) {
      this.rank = rank;
      this.tasks = builder.rank(rank);
      this.panelOfB = new int[panels()];
      this.panelOfBias = new int[right.biased() ? panels() : 0];
      for (int panel = 0; panel < panelOfB.length; panel++) {
        long column = panel * tileColumns;
        long columns = columns(panel);
        long depthBytes = k * elementBytes;
        panelOfB[panel] =
            right.transposed
                ? tasks.region(right.b, column * depthBytes, columns, depthBytes, depthBytes)
                : tasks.region(
                    right.b, column * elementBytes, k, columns * elementBytes, n * elementBytes);
        if (right.biased()) {
          panelOfBias[panel] =
              tasks.region(
                  right.bias, column * elementBytes, 1, columns * elementBytes, n * elementBytes);
        }
      }
    }

    private long columns(int panel) {
      return Math.min(tileColumns, n - panel * tileColumns);
    }

    /**
     * Adds tiles to the last pool, a few rows of tiles at a time, down before right: what lanes
     * work on together shares rows of A and columns of B.
     *
     * @param left where the rows of A are
     * @param first the first row
     * @param count rows
     * @param out where the rows of C go
     * @param signals adds to a task what it waits for and raises
     */
    void add(
        RowBuffer left,
        long first,
        long count,
        RowBuffer out,
        Consumer<ScheduleBuilder.RankBuilder> signals) {
      long groupRows = (panels() < WIDE ? NARROW_GROUP : WIDE_GROUP) * tileRows;
      for (long group = first; group < first + count; group += groupRows) {
        addGroup(left, group, Math.min(first + count, group + groupRows), out, signals);
      }
    }

    private void addGroup(
        RowBuffer left,
        long first,
        long end,
        RowBuffer out,
        Consumer<ScheduleBuilder.RankBuilder> signals) {
      long outBytes = out.rowBytes() / n;
      int[] rowsOfA = new int[(int) Math.ceilDiv(end - first, tileRows)];
      for (int i = 0; i < rowsOfA.length; i++) {
        long row = first + i * tileRows;
        rowsOfA[i] = left.region(tasks, rank, row, Math.min(tileRows, end - row));
      }
      for (int panel = 0; panel < panelOfB.length; panel++) {
        for (int i = 0; i < rowsOfA.length; i++) {
          long row = first + i * tileRows;
          tasks.compute(kernel);
          signals.accept(tasks);
          tasks.stream().part(rowsOfA[i]).stream().part(panelOfB[panel]);
          if (right.biased()) {
            tasks.stream().part(panelOfBias[panel]);
          }
          tasks.output(
              out.tile(
                  tasks,
                  rank,
                  row,
                  Math.min(tileRows, end - row),
                  panel * tileColumns * outBytes,
                  columns(panel) * outBytes));
        }
      }
    }
  }
}
