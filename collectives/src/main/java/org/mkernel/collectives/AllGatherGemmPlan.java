package org.mkernel.collectives;

import java.util.List;
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

  private final Topology topology;
  private final ScheduleBuilder builder;
  private final RowSharding sharding;
  private final long chunkRows;
  private final RowChunks chunks;
  private final RowBuffer a;
  private final RowBuffer c;
  private final RowBuffer gathered;
  private final GemmTiles tiles;
  private final GatherPlan gather;

  AllGatherGemmPlan(Problem problem, List<OperandSpec> operands) {
    topology = problem.topology();
    builder = new ScheduleBuilder(problem.operator(), topology);
    sharding = RowSharding.of(problem.size("m"), topology);
    chunkRows = Tuning.chunkRows(problem, sharding.block());
    long elementBytes = problem.dtype().bytes();
    long rowBytes = problem.size("k") * elementBytes;
    GemmOperator.Buffers buffers = GemmOperator.declare(operands, problem, builder);
    tiles =
        new GemmTiles(
            builder,
            problem,
            sharding,
            chunkRows,
            new GemmTiles.Right(
                buffers.b(),
                GemmOperator.transposed(problem),
                buffers.bias(),
                GemmOperator.activation(problem)));
    chunks = new RowChunks(sharding, chunkRows, Tuning.CHUNK_ROWS);
    a = RowBuffer.shard(buffers.a(), rowBytes, sharding);
    c = RowBuffer.whole(buffers.c(), problem.size("n") * elementBytes, sharding);
    gathered =
        topology.size() > 1
            ? RowBuffer.whole(
                builder.workspace("gathered", problem.dtype(), problem.size("m") * rowBytes, DEPTH),
                rowBytes,
                sharding)
            : a;
    gather = new GatherPlan(builder, chunks, rank -> a, Ready.ALWAYS, gathered);
  }

  /** Rows that are here need not come in chunks, where tiles end with chunks by themselves. */
  private void addOwn(int rank, GemmTiles.OnRank own) {
    if (tiles.fill(chunkRows)) {
      own.add(a, sharding.first(rank), sharding.count(rank), c, tile -> {});
      return;
    }
    for (int chunk = 0; chunk < chunks.count(rank); chunk++) {
      own.add(a, chunks.first(rank, chunk), chunks.rows(rank, chunk), c, tile -> {});
    }
  }

  Schedule plan() {
    for (int rank = 0; rank < topology.size(); rank++) {
      ScheduleBuilder.RankBuilder tasks = builder.rank(rank);
      Roles.communicate(tasks, gather.send(rank));
      GemmTiles.OnRank own = tiles.on(rank);
      int pool = tasks.pool("gemm");
      addOwn(rank, own);
      gather.visitArrivals(
          rank,
          (source, chunk) ->
              own.add(
                  gathered,
                  chunks.first(source, chunk),
                  chunks.rows(source, chunk),
                  c,
                  tile -> tile.await(gather.arrived(source, chunk))));
      tasks.role("compute", true, pool);
    }
    return builder.build();
  }
}
