package org.mkernel.collectives;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.spi.OperandSpec;
import org.mkernel.api.spi.Problem;

/**
 * The operator {@code all-gather-gemm}: rows are gathered into a workspace, tiles computed from it.
 */
public final class AllGatherGemmProvider extends GemmOperator {
  /** For {@link java.util.ServiceLoader}. */
  public AllGatherGemmProvider() {
    super(
        AllGatherGemm.NAME,
        "C = A·B: A sharded by rows over the ranks, each rank with its own B",
        sizes(
            "m", "rows of A, all ranks together",
            "n", "columns of B, on each rank",
            "k", "columns of A"),
        List.of());
  }

  @Override
  Map<String, Long> sizes(Requests requests) {
    return Map.of(
        "m", requests.totalRows("a"),
        "n", columnsOfB(requests),
        "k", requests.shape(0, "a").columns());
  }

  @Override
  List<OperandSpec> layout(Problem problem) {
    long n = problem.size("n");
    long k = problem.size("k");
    List<OperandSpec> operands = new ArrayList<>();
    operands.add(Operands.rows("a", false, problem, k));
    operands.add(
        transposed(problem)
            ? Operands.rowBlocks("b", problem, n, k)
            : Operands.columnBlocks("b", false, problem, k, n));
    if (biased(problem)) {
      operands.add(Operands.columnBlocks("bias", false, problem, 1, n));
    }
    operands.add(Operands.columnBlocks("c", true, problem, problem.size("m"), n));
    return operands;
  }

  @Override
  public Schedule plan(Problem problem) {
    return new AllGatherGemmPlan(problem, operands(problem)).plan();
  }

  @Override
  public long interNodeBytes(Problem problem) {
    return Operands.gatheredBetweenNodes(problem);
  }

  @Override
  public Reference reference(Problem problem, Inputs inputs) {
    RowSharding sharding = RowSharding.of(problem.size("m"), problem.topology());
    return new GemmReference(
        problem,
        inputs,
        1,
        (rank, row, products) -> {
          int owner = sharding.owner(row);
          products.add(owner, row - sharding.first(owner), rank);
        });
  }
}
