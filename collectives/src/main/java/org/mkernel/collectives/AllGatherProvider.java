package org.mkernel.collectives;

import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import org.mkernel.api.schedule.Kernel;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.schedule.ScheduleBuilder;
import org.mkernel.api.schedule.Topology;
import org.mkernel.api.spi.OperandSpec;
import org.mkernel.api.spi.Problem;

/** The operator {@code all-gather}. Peers write into the output: there is no workspace. */
public final class AllGatherProvider extends Operator {
  /** For {@link java.util.ServiceLoader}. */
  public AllGatherProvider() {
    super(
        AllGather.NAME,
        "C = all rows of A, on every rank",
        sizes("m", "rows of A, all ranks together", "k", "columns of A"),
        List.of(Tuning.CHUNK_ROWS));
  }

  @Override
  Map<String, Long> sizes(Requests requests) {
    return Map.of("m", requests.totalRows("a"), "k", requests.shape(0, "a").columns());
  }

  @Override
  List<OperandSpec> layout(Problem problem) {
    long k = problem.size("k");
    return List.of(
        Operands.rows("a", false, problem, k),
        Operands.whole("c", true, problem, problem.size("m"), k));
  }

  @Override
  public OptionalLong inPlace(Problem problem, int rank) {
    return OptionalLong.of(Operands.firstByte(problem, rank, "k"));
  }

  @Override
  public Schedule plan(Problem problem) {
    List<OperandSpec> operands = operands(problem);
    Topology topology = problem.topology();
    RowSharding sharding = RowSharding.of(problem.size("m"), topology);
    long rowBytes = problem.size("k") * problem.dtype().bytes();
    ScheduleBuilder builder = new ScheduleBuilder(name(), topology);
    RowBuffer a =
        RowBuffer.shard(
            Operands.declare(operands.getFirst(), problem, builder), rowBytes, sharding);
    RowBuffer c =
        RowBuffer.whole(Operands.declare(operands.getLast(), problem, builder), rowBytes, sharding);
    int copy = builder.kernel(new Kernel(Kernel.COPY, Map.of()));
    RowChunks chunks =
        new RowChunks(sharding, Tuning.chunkRows(problem, sharding.block()), Tuning.CHUNK_ROWS);
    GatherPlan gather = new GatherPlan(builder, chunks, rank -> a, Ready.ALWAYS, c);
    for (int rank = 0; rank < topology.size(); rank++) {
      ScheduleBuilder.RankBuilder tasks = builder.rank(rank);
      Roles.communicate(tasks, gather.send(rank));
      int pool = tasks.pool("copy");
      for (int chunk = 0; chunk < chunks.count(rank); chunk++) {
        long row = chunks.first(rank, chunk);
        long rows = chunks.rows(rank, chunk);
        tasks.compute(copy).stream()
            .part(a.region(tasks, rank, row, rows))
            .output(c.region(tasks, rank, row, rows));
      }
      gather.awaitArrivals(rank);
      tasks.role("compute", true, pool);
    }
    return builder.build();
  }

  @Override
  public long interNodeBytes(Problem problem) {
    return Operands.gatheredBetweenNodes(problem);
  }

  @Override
  public Reference reference(Problem problem, Inputs inputs) {
    RowSharding sharding = RowSharding.of(problem.size("m"), problem.topology());
    return (rank, operand, row, values, magnitudes) -> {
      int owner = sharding.owner(row);
      inputs.row(owner, "a", row - sharding.first(owner), values);
      Magnitudes.of(values, magnitudes);
    };
  }
}
