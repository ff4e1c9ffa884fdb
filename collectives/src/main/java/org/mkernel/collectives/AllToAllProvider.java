package org.mkernel.collectives;

import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.schedule.Topology;
import org.mkernel.api.spi.OperandSpec;
import org.mkernel.api.spi.Problem;

/** The operator {@code all-to-all}. */
public final class AllToAllProvider extends Operator {
  /** For {@link java.util.ServiceLoader}. */
  public AllToAllProvider() {
    super(
        AllToAll.NAME,
        "C = the blocks of rows that the ranks have for this one",
        sizes("m", "rows of A, on each rank, for all ranks together", "n", "columns of A"),
        List.of(Tuning.CHUNK_ROWS));
  }

  @Override
  Map<String, Long> sizes(Requests requests) {
    return Map.of("m", requests.shape(0, "a").rows(), "n", requests.shape(0, "a").columns());
  }

  @Override
  List<OperandSpec> layout(Problem problem) {
    long n = problem.size("n");
    OperandSpec a = Operands.rowBlocks("a", problem, problem.size("m"), n);
    int ranks = problem.topology().size();
    RowSharding blocks = RowSharding.of(problem.size("m"), problem.topology());
    List<OperandSpec.Shard> shards =
        IntStream.range(0, ranks)
            .mapToObj(
                r -> new OperandSpec.Shard(ranks * blocks.first(r), 0, ranks * blocks.count(r), n))
            .toList();
    return List.of(a, new OperandSpec("c", true, a.rows(), n, shards));
  }

  @Override
  public Schedule plan(Problem problem) {
    return new AllToAllPlan(problem, operands(problem)).plan();
  }

  @Override
  public long interNodeBytes(Problem problem) {
    Topology topology = problem.topology();
    RowSharding blocks = RowSharding.of(problem.size("m"), topology);
    long rows = 0;
    for (int rank = 0; rank < topology.size(); rank++) {
      int sources = topology.size() - topology.ranks(topology.node(rank));
      rows = Math.addExact(rows, Math.multiplyExact(blocks.count(rank), sources));
    }
    return Math.multiplyExact(Math.multiplyExact(rows, problem.size("n")), problem.dtype().bytes());
  }

  @Override
  public Reference reference(Problem problem, Inputs inputs) {
    RowSharding blocks = RowSharding.of(problem.size("m"), problem.topology());
    return (rank, operand, row, values, magnitudes) -> {
      int source = Math.toIntExact(row / blocks.count(rank));
      inputs.row(source, "a", blocks.first(rank) + row % blocks.count(rank), values);
      Magnitudes.of(values, magnitudes);
    };
  }
}
