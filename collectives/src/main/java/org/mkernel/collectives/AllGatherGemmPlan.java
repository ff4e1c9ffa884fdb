package org.mkernel.collectives;

import java.util.ArrayList;
import java.util.List;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.schedule.ScheduleBuilder;
import org.mkernel.api.schedule.Topology;
import org.mkernel.api.spi.OperandSpec;
import org.mkernel.api.spi.Problem;

/**
 * Plans {@code all-gather-gemm}. Rows of other ranks are gathered into a workspace, own rows are
 * read where they are; a tile of C waits for the chunks of rows that it is computed from.
 */
final class AllGatherGemmPlan {
  /** Slots of the workspace: the next launch may send while this one still computes. */
  private static final int DEPTH = 2;

  private final Topology topology;
  private final ScheduleBuilder builder;
  private final RowSharding sharding;
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
    long chunkRows = Tuning.chunkRows(problem, sharding.block());
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

  Schedule plan() {
    for (int rank = 0; rank < topology.size(); rank++) {
      ScheduleBuilder.RankBuilder tasks = builder.rank(rank);
      Roles.communicate(tasks, gather.send(rank));
      GemmTiles.OnRank own = tiles.on(rank);
      int pool = tasks.pool("gemm");
      own.add(a, sharding.first(rank), sharding.count(rank), c);
      List<GemmTiles.Chunk> arrivals = new ArrayList<>();
      gather.visitArrivals(
          rank,
          (source, chunk) ->
              arrivals.add(
                  new GemmTiles.Chunk(
                      chunks.first(source, chunk),
                      chunks.rows(source, chunk),
                      tile -> tile.await(gather.arrived(source, chunk)))));
      own.addArriving(gathered, arrivals, c);
      tasks.role("compute", true, pool);
    }
    return builder.build();
  }
}
