package org.mkernel.collectives;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.spi.OperandSpec;
import org.mkernel.api.spi.Problem;

/** What providers of sums of products share: all but who gets the sums. */
abstract class GemmReduceOperator extends GemmOperator {
  GemmReduceOperator(String name, String description) {
    super(
        name,
        description,
        sizes(
            "m", "rows of A, on each rank",
            "n", "columns of B",
            "k", "columns of A, on each rank"),
        List.of(Partials.OPTION));
  }

  /** Whether every rank gets all rows. */
  abstract boolean everywhere();

  @Override
  final Map<String, Long> sizes(Requests requests) {
    Shape a = requests.shape(0, "a");
    return Map.of("m", a.rows(), "n", columnsOfB(requests), "k", a.columns());
  }

  @Override
  final List<OperandSpec> layout(Problem problem) {
    long m = problem.size("m");
    long n = problem.size("n");
    long k = problem.size("k");
    List<OperandSpec> operands = new ArrayList<>();
    operands.add(Operands.columnBlocks("a", false, problem, m, k));
    operands.add(
        transposed(problem)
            ? Operands.columnBlocks("b", false, problem, n, k)
            : Operands.rowBlocks("b", problem, k, n));
    if (biased(problem)) {
      operands.add(Operands.whole("bias", false, problem, 1, n));
    }
    operands.add(
        everywhere()
            ? Operands.whole("c", true, problem, m, n)
            : Operands.rows("c", true, problem, n));
    return operands;
  }

  @Override
  public final Schedule plan(Problem problem) {
    return new GemmReducePlan(problem, operands(problem), everywhere()).plan();
  }

  @Override
  public final long interNodeBytes(Problem problem) {
    long reduced = Partials.betweenNodes(problem);
    return everywhere()
        ? Math.addExact(reduced, Operands.spreadBetweenNodes(problem, "n"))
        : reduced;
  }

  @Override
  public final Reference reference(Problem problem, Inputs inputs) {
    int ranks = problem.topology().size();
    RowSharding sharding = RowSharding.of(problem.size("m"), problem.topology());
    GemmReference sums =
        new GemmReference(
            problem,
            inputs,
            ranks,
            (rank, row, products) -> {
              long rowOfAll = everywhere() ? row : sharding.first(rank) + row;
              for (int source = 0; source < ranks; source++) {
                products.add(source, rowOfAll, source);
              }
            });
    return everywhere() ? new CommonRows(sums) : sums;
  }
}
