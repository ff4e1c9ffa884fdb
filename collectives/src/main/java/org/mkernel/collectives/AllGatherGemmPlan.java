package org.mkernel.collectives;

import java.util.List;
import java.util.Map;
import org.mkernel.api.UsageException;
import org.mkernel.api.schedule.Kernel;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.schedule.ScheduleBuilder;
import org.mkernel.api.schedule.Topology;
import org.mkernel.api.spi.OperandSpec;
import org.mkernel.api.spi.Problem;

/**
 * Plans {@code all-gather-gemm}. Rows of other ranks are gathered into a workspace, own rows are
 * read where they are; a tile of C waits for the one chunk of rows that it is computed from.
 */
final class AllGatherGemmPlan {
  /** Slots of the workspace: the next launch may send while this one still computes. */
  private static final int DEPTH = 2;

  /** Tiles of all ranks together. A schedule costs about 200 bytes for each. */
  private static final long MAX_TILES = 1L << 24;

  /** Rows of tiles that are computed together. */
  private static final int GROUP_TILES = 8;

  private final Topology topology;
  private final RowSharding sharding;
  private final long elementBytes;
  private final long n;
  private final long k;
  private final long tileRows;
  private final long tileColumns;
  private final boolean transposed;
  private final boolean biased;
  private final ScheduleBuilder builder;
  private final int a;
  private final int b;
  private final int bias;
  private final int c;
  private final int gathered;
  private final int gemm;
  private final GatherPlan gather;

  AllGatherGemmPlan(Problem problem, List<OperandSpec> operands) {
    topology = problem.topology();
    sharding = RowSharding.of(problem.size("m"), topology);
    elementBytes = problem.dtype().bytes();
    n = problem.size("n");
    k = problem.size("k");
    transposed = AllGatherGemmProvider.transposed(problem);
    biased = AllGatherGemmProvider.biased(problem);
    long chunkRows = Tuning.chunkRows(problem, sharding.block());
    tileRows = Tuning.tileRows(problem, chunkRows);
    tileColumns = Tuning.tileColumns(problem, n);
    requireFewTiles(chunkRows);
    builder = new ScheduleBuilder(problem.operator(), topology);
    a = Operands.declare(operands.get(0), problem, builder);
    b = Operands.declare(operands.get(1), problem, builder);
    bias = biased ? Operands.declare(operands.get(2), problem, builder) : -1;
    c = Operands.declare(operands.getLast(), problem, builder);
    long allBytes = problem.size("m") * k * elementBytes;
    gathered =
        topology.size() > 1 ? builder.workspace("gathered", problem.dtype(), allBytes, DEPTH) : a;
    gemm =
        builder.kernel(
            new Kernel(
                Kernel.GEMM,
                Map.of(
                    Kernel.TRANSPOSE_B, Boolean.toString(transposed),
                    Kernel.BIAS, Boolean.toString(biased),
                    Kernel.ACTIVATION, AllGatherGemmProvider.activation(problem).label())));
    gather =
        new GatherPlan(
            builder, sharding, new GatherPlan.Rows(a, gathered, k * elementBytes), chunkRows);
  }

  private void requireFewTiles(long chunkRows) {
    double chunks = Math.ceilDiv(sharding.block(), chunkRows);
    double down = topology.size() * chunks * Math.ceilDiv(chunkRows, tileRows);
    double tiles = topology.size() * down * Math.ceilDiv(n, tileColumns);
    if (tiles > MAX_TILES) {
      throw new UsageException(
          ("tiles of %d x %d cut C of %d ranks into about %.0f tiles; at most %d are possible:"
                  + " raise %s, %s or %s")
              .formatted(
                  tileRows,
                  tileColumns,
                  topology.size(),
                  tiles,
                  MAX_TILES,
                  Tuning.TILE_ROWS.name(),
                  Tuning.TILE_COLUMNS.name(),
                  Tuning.CHUNK_ROWS.name()));
    }
  }

  Schedule plan() {
    for (int rank = 0; rank < topology.size(); rank++) {
      gather.send(rank);
      RankTiles tiles = new RankTiles(rank);
      int pool = builder.rank(rank).pool("gemm");
      for (int chunk = 0; chunk < gather.chunks(rank); chunk++) {
        tiles.add(rank, chunk);
      }
      gather.visitArrivals(rank, tiles::add);
      builder.rank(rank).role("compute", true, pool);
    }
    return builder.build();
  }

  /** The tiles of one rank. Panels of B and of the bias are written down once for all of them. */
  private final class RankTiles {
    private final int rank;
    private final ScheduleBuilder.RankBuilder tasks;
    private final int[] panelOfB;
    private final int[] panelOfBias;

    RankTiles(int rank) {
      this.rank = rank;
      this.tasks = builder.rank(rank);
      int panels = (int) Math.ceilDiv(n, tileColumns);
      this.panelOfB = new int[panels];
      this.panelOfBias = new int[biased ? panels : 0];
      for (int panel = 0; panel < panels; panel++) {
        long column = panel * tileColumns;
        long columns = columns(panel);
        panelOfB[panel] =
            transposed
                ? tasks.region(
                    b, column * k * elementBytes, columns, k * elementBytes, k * elementBytes)
                : tasks.region(
                    b, column * elementBytes, k, columns * elementBytes, n * elementBytes);
        if (biased) {
          panelOfBias[panel] =
              tasks.region(
                  bias, column * elementBytes, 1, columns * elementBytes, n * elementBytes);
        }
      }
    }

    private long columns(int panel) {
      return Math.min(tileColumns, n - panel * tileColumns);
    }

    /**
     * Adds the tiles of a chunk of rows, a few rows of tiles at a time, down before right: what
     * lanes work on together shares rows of A and columns of B.
     */
    void add(int source, int chunk) {
      long end = gather.firstRow(source, chunk) + gather.rowCount(source, chunk);
      long groupRows = GROUP_TILES * tileRows;
      for (long group = gather.firstRow(source, chunk); group < end; group += groupRows) {
        addGroup(source, chunk, group, Math.min(end, group + groupRows));
      }
    }

    private void addGroup(int source, int chunk, long first, long end) {
      int[] left = new int[(int) Math.ceilDiv(end - first, tileRows)];
      for (int i = 0; i < left.length; i++) {
        long row = first + i * tileRows;
        left[i] = rowsOfA(source, row, Math.min(tileRows, end - row));
      }
      for (int panel = 0; panel < panelOfB.length; panel++) {
        for (int i = 0; i < left.length; i++) {
          long row = first + i * tileRows;
          tasks.compute(gemm);
          if (source != rank) {
            tasks.await(gather.arrived(source, chunk));
          }
          tasks.stream().part(left[i]).stream().part(panelOfB[panel]);
          if (biased) {
            tasks.stream().part(panelOfBias[panel]);
          }
          tasks.output(
              tasks.region(
                  c,
                  (row * n + panel * tileColumns) * elementBytes,
                  Math.min(tileRows, end - row),
                  columns(panel) * elementBytes,
                  n * elementBytes));
        }
      }
    }

    private int rowsOfA(int source, long row, long rows) {
      long bytes = k * elementBytes;
      return source == rank
          ? tasks.region(a, (row - sharding.first(rank)) * bytes, rows, bytes, bytes)
          : tasks.region(gathered, row * bytes, rows, bytes, bytes);
    }
  }
}
