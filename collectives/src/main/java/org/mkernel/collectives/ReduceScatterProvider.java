package org.mkernel.collectives;

import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.schedule.ScheduleBuilder;
import org.mkernel.api.spi.OperandSpec;
import org.mkernel.api.spi.Problem;

/** The operator {@code reduce-scatter}. Addends are read where the caller has them. */
public final class ReduceScatterProvider extends Operator {
  /** For {@link java.util.ServiceLoader}. */
  public ReduceScatterProvider() {
    super(
        ReduceScatter.NAME,
        "C = sum of A over the ranks, each with its slice of the rows",
        sizes("m", "rows of A, on each rank", "n", "columns of A"),
        List.of(Tuning.CHUNK_ROWS, Partials.OPTION));
  }

  @Override
  Map<String, Long> sizes(Requests requests) {
    return Map.of("m", requests.shape(0, "a").rows(), "n", requests.shape(0, "a").columns());
  }

  @Override
  List<OperandSpec> layout(Problem problem) {
    long n = problem.size("n");
    return List.of(
        Operands.rowBlocks("a", problem, problem.size("m"), n),
        Operands.rows("c", true, problem, n));
  }

  @Override
  public OptionalLong inPlace(Problem problem, int rank) {
    return OptionalLong.of(-Operands.firstByte(problem, rank, "n"));
  }

  @Override
  public Schedule plan(Problem problem) {
    List<OperandSpec> operands = operands(problem);
    RowSharding sharding = RowSharding.of(problem.size("m"), problem.topology());
    long rowBytes = problem.size("n") * problem.dtype().bytes();
    ScheduleBuilder builder = new ScheduleBuilder(name(), problem.topology());
    int a = Operands.declare(operands.getFirst(), problem, builder);
    int c = Operands.declare(operands.getLast(), problem, builder);
    ReducePlan reduce =
        new ReducePlan(
            builder,
            new RowChunks(sharding, Tuning.chunkRows(problem, sharding.block()), Tuning.CHUNK_ROWS),
            new ReducePlan.Addends(
                RowBuffer.whole(a, rowBytes, sharding), problem.dtype(), Ready.ALWAYS),
            Partials.dtype(problem),
            ReducePlan.Sums.plain(RowBuffer.shard(c, rowBytes, sharding)));
    for (int rank = 0; rank < problem.topology().size(); rank++) {
      Roles.communicate(builder.rank(rank), reduce.send(rank));
      Roles.compute(builder.rank(rank), reduce.reduce(rank));
    }
    return builder.build();
  }

  @Override
  public long interNodeBytes(Problem problem) {
    return Partials.betweenNodes(problem);
  }

  @Override
  public double flops(Problem problem) {
    return SumReference.flops(problem);
  }

  @Override
  public Reference reference(Problem problem, Inputs inputs) {
    RowSharding sharding = RowSharding.of(problem.size("m"), problem.topology());
    return new SumReference(problem, inputs, (rank, row) -> sharding.first(rank) + row);
  }
}
