package org.mkernel.collectives;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.IntBinaryOperator;
import java.util.stream.IntStream;
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
   * Rows that arrive, or are wanted, together.
   *
   * @param first the first row
   * @param count rows
   * @param signals adds to a task what it waits for or raises because of them
   */
  record Chunk(long first, long count, Consumer<ScheduleBuilder.RankBuilder> signals) {
    long end() {
      return first + count;
    }
  }

  /**
   * Sizes tiles.
   *
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
    double down =
        tileRows > chunkRows
            ? Math.ceilDiv(rows.block(), tileRows)
            : (double) Math.ceilDiv(rows.block(), chunkRows) * Math.ceilDiv(chunkRows, tileRows);
    double tiles = ranks * (ranks * down) * Math.ceilDiv(n, tileColumns);
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

  /** How many tiles have a part in a chunk of so many rows. */
  int count(long rows) {
    return Math.toIntExact(Math.ceilDiv(rows, tileRows) * panels());
  }

  /**
   * Chunks whose rows follow each other, of at most one tile, or a chunk alone that has more.
   *
   * @param turn its place among the blocks
   */
  private record Block(List<Chunk> chunks, int turn) {
    long first() {
      return chunks.getFirst().first;
    }

    long end() {
      return chunks.getLast().end();
    }
  }

  private List<Block> blocks(List<Chunk> chunks, IntBinaryOperator turn) {
    Integer[] byRow = IntStream.range(0, chunks.size()).boxed().toArray(Integer[]::new);
    Arrays.sort(byRow, Comparator.comparingLong(i -> chunks.get(i).first));
    List<Block> blocks = new ArrayList<>();
    for (int next = 0; next < byRow.length; ) {
      List<Chunk> joined = new ArrayList<>();
      int at = byRow[next];
      Chunk last = chunks.get(at);
      long first = last.first;
      joined.add(last);
      for (next++; next < byRow.length; next++) {
        Chunk below = chunks.get(byRow[next]);
        if (below.first != last.end() || below.end() - first > tileRows) {
          break;
        }
        joined.add(below);
        at = turn.applyAsInt(at, byRow[next]);
        last = below;
      }
      blocks.add(new Block(joined, at));
    }
    blocks.sort(Comparator.comparingInt(Block::turn));
    return blocks;
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
     * Adds the tiles of rows that are there to the last pool.
     *
     * @param left where the rows of A are
     * @param first the first row
     * @param count rows
     * @param out where the rows of C go
     */
    void add(RowBuffer left, long first, long count, RowBuffer out) {
      addBlock(left, new Block(List.of(new Chunk(first, count, tile -> {})), 0), out);
    }

    /**
     * Adds the tiles of rows that arrive in chunks. Tiles that span chunks come when the last of
     * these is expected.
     *
     * @param left where the rows of A are
     * @param chunks in the order in which they are expected
     * @param out where the rows of C go
     */
    void addArriving(RowBuffer left, List<Chunk> chunks, RowBuffer out) {
      addBlocks(left, chunks, Math::max, out);
    }

    /**
     * Adds the tiles of rows that leave in chunks. Tiles that span chunks come when the first of
     * these is wanted.
     *
     * @param left where the rows of A are
     * @param chunks in the order in which they are wanted
     * @param out where the rows of C go
     */
    void addLeaving(RowBuffer left, List<Chunk> chunks, RowBuffer out) {
      addBlocks(left, chunks, Math::min, out);
    }

    private void addBlocks(
        RowBuffer left, List<Chunk> chunks, IntBinaryOperator turn, RowBuffer out) {
      for (Block block : blocks(chunks, turn)) {
        addBlock(left, block, out);
      }
    }

    /**
     * Adds a few rows of tiles at a time, down before right: what lanes work on together shares
     * rows of A and columns of B.
     */
    private void addBlock(RowBuffer left, Block block, RowBuffer out) {
      long groupRows = (panels() < WIDE ? NARROW_GROUP : WIDE_GROUP) * tileRows;
      for (long group = block.first(); group < block.end(); group += groupRows) {
        addGroup(left, group, Math.min(block.end(), group + groupRows), out, block);
      }
    }

    private void addGroup(RowBuffer left, long first, long end, RowBuffer out, Block block) {
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
          block.chunks.forEach(chunk -> chunk.signals.accept(tasks));
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
