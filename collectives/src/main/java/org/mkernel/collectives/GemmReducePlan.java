package org.mkernel.collectives;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.mkernel.api.Activation;
import org.mkernel.api.DType;
import org.mkernel.api.schedule.Kernel;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.schedule.ScheduleBuilder;
import org.mkernel.api.schedule.SignalSpec;
import org.mkernel.api.schedule.Topology;
import org.mkernel.api.spi.OperandSpec;
import org.mkernel.api.spi.Problem;

/**
 * Plans {@code gemm-reduce-scatter} and {@code gemm-all-reduce}. Tiles of this rank's product are
 * the addends of a reduction; a chunk of rows goes on its way once its tiles are counted. Tiles are
 * computed in the order in which the reduction wants them, and a sum that others wait for comes
 * before the next tile.
 */
final class GemmReducePlan {
  private static final int NONE = -1;

  private final Topology topology;
  private final ScheduleBuilder builder;
  private final RowChunks chunks;
  private final RowBuffer a;
  private final RowBuffer products;
  private final int computed;
  private final GemmTiles tiles;
  private final ReducePlan reduce;

  GemmReducePlan(Problem problem, List<OperandSpec> operands, boolean everywhere) {
    topology = problem.topology();
    builder = new ScheduleBuilder(problem.operator(), topology);
    RowSharding sharding = RowSharding.of(problem.size("m"), topology);
    long chunkRows = Tuning.chunkRows(problem, sharding.block());
    long n = problem.size("n");
    long elementBytes = problem.dtype().bytes();
    GemmOperator.Buffers buffers = GemmOperator.declare(operands, problem, builder);
    Activation activation = GemmOperator.activation(problem);
    boolean transposed = GemmOperator.transposed(problem);
    // One rank has nothing to add: its tiles are C.
    boolean alone = topology.size() == 1;
    tiles =
        new GemmTiles(
            builder,
            problem,
            sharding,
            chunkRows,
            alone
                ? new GemmTiles.Right(buffers.b(), transposed, buffers.bias(), activation)
                : new GemmTiles.Right(buffers.b(), transposed, NONE, Activation.NONE));
    chunks = new RowChunks(sharding, chunkRows, Tuning.CHUNK_ROWS);
    a = RowBuffer.whole(buffers.a(), problem.size("k") * elementBytes, sharding);
    RowBuffer c = new RowBuffer(buffers.c(), n * elementBytes, sharding, everywhere);
    DType partials = Partials.dtype(problem);
    long bytes = n * partials.bytes();
    products =
        alone
            ? c
            : RowBuffer.whole(
                builder.workspace("products", partials, problem.size("m") * bytes, 1),
                bytes,
                sharding);
    computed =
        builder.counters("computed", topology.size() * chunks.perRank(), SignalSpec.Scope.DEVICE);
    ReducePlan.Addends addends = new ReducePlan.Addends(products, partials, this::awaitTiles);
    ReducePlan.Sums sums = new ReducePlan.Sums(c, finish(problem), buffers.bias(), NONE);
    reduce =
        everywhere
            ? AllReducePlan.of(builder, chunks, addends, partials, sums)
            : new ReducePlan(builder, chunks, addends, partials, sums);
  }

  private int finish(Problem problem) {
    boolean biased = GemmOperator.biased(problem);
    Activation activation = GemmOperator.activation(problem);
    return biased || activation != Activation.NONE
        ? builder.kernel(
            new Kernel(
                Kernel.REDUCE,
                Map.of(
                    Kernel.BIAS, Boolean.toString(biased),
                    Kernel.ACTIVATION, activation.label())))
        : NONE;
  }

  private int computed(int owner, int chunk) {
    return computed + owner * chunks.perRank() + chunk;
  }

  private void awaitTiles(ScheduleBuilder.RankBuilder tasks, int owner, int chunk) {
    tasks.await(computed(owner, chunk), tiles.count(chunks.rows(owner, chunk)), 0);
  }

  Schedule plan() {
    for (int rank = 0; rank < topology.size(); rank++) {
      plan(rank);
    }
    return builder.build();
  }

  private void plan(int rank) {
    ScheduleBuilder.RankBuilder tasks = builder.rank(rank);
    GemmTiles.OnRank own = tiles.on(rank);
    int gemm = tasks.pool("gemm");
    List<GemmTiles.Chunk> wanted = new ArrayList<>();
    reduce.visit(
        rank,
        (owner, chunk) ->
            wanted.add(
                new GemmTiles.Chunk(
                    chunks.first(owner, chunk),
                    chunks.rows(owner, chunk),
                    tile -> tile.raise(rank, computed(owner, chunk)))));
    own.addLeaving(a, wanted, products);
    if (topology.size() == 1) {
      tasks.role("compute", true, gemm);
      return;
    }
    Roles.communicate(tasks, reduce.send(rank));
    int[] sums = reduce.reduce(rank);
    Roles.compute(tasks, new int[] {sums[0], gemm}, Arrays.copyOfRange(sums, 1, sums.length));
  }
}
