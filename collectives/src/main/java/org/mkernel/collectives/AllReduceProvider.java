package org.mkernel.collectives;

import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.schedule.ScheduleBuilder;
import org.mkernel.api.spi.OperandSpec;
import org.mkernel.api.spi.Problem;

/** The operator {@code all-reduce}. Elements are dealt out, not rows: the shape does not matter. */
public final class AllReduceProvider extends Operator {
  /** For {@link java.util.ServiceLoader}. */
  public AllReduceProvider() {
    super(
        AllReduce.NAME,
        "C = sum of A over the ranks, on every rank, bit for bit the same",
        sizes("m", "rows of A, on each rank", "n", "columns of A"),
        List.of(Tuning.CHUNK_ELEMENTS, Partials.OPTION));
  }

  @Override
  Map<String, Long> sizes(Requests requests) {
    return Map.of("m", requests.shape(0, "a").rows(), "n", requests.shape(0, "a").columns());
  }

  @Override
  List<OperandSpec> layout(Problem problem) {
    long m = problem.size("m");
    long n = problem.size("n");
    return List.of(
        Operands.rowBlocks("a", problem, m, n), Operands.whole("c", true, problem, m, n));
  }

  @Override
  public OptionalLong inPlace(Problem problem, int rank) {
    return OptionalLong.of(0);
  }

  @Override
  public Schedule plan(Problem problem) {
    List<OperandSpec> operands = operands(problem);
    RowSharding elements = RowSharding.ofElements(problem);
    long bytes = problem.dtype().bytes();
    ScheduleBuilder builder = new ScheduleBuilder(name(), problem.topology());
    int a = Operands.declare(operands.getFirst(), problem, builder);
    int c = Operands.declare(operands.getLast(), problem, builder);
    ReducePlan reduce =
        AllReducePlan.of(
            builder,
            new RowChunks(
                elements, Tuning.chunkElements(problem, elements.block()), Tuning.CHUNK_ELEMENTS),
            new ReducePlan.Addends(
                RowBuffer.whole(a, bytes, elements), problem.dtype(), Ready.ALWAYS),
            Partials.dtype(problem),
            ReducePlan.Sums.plain(RowBuffer.whole(c, bytes, elements)));
    for (int rank = 0; rank < problem.topology().size(); rank++) {
      Roles.communicate(builder.rank(rank), reduce.send(rank));
      Roles.compute(builder.rank(rank), reduce.reduce(rank));
    }
    return builder.build();
  }

  @Override
  public long interNodeBytes(Problem problem) {
    return Math.addExact(Partials.betweenNodes(problem), Operands.spreadBetweenNodes(problem, "n"));
  }

  @Override
  public double flops(Problem problem) {
    return SumReference.flops(problem);
  }

  @Override
  public Reference reference(Problem problem, Inputs inputs) {
    return new SumReference(problem, inputs, (rank, row) -> row);
  }
}
