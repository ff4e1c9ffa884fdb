package org.mkernel.collectives;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.mkernel.api.Activation;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.schedule.Topology;
import org.mkernel.api.spi.CollectiveProvider;
import org.mkernel.api.spi.OperandSpec;
import org.mkernel.api.spi.OptionSpec;
import org.mkernel.api.spi.Problem;

/**
 * The operator {@code all-gather-gemm}: rows are gathered into a workspace, tiles computed from it.
 */
public final class AllGatherGemmProvider implements CollectiveProvider {
  private static final List<String> BOOLEAN = List.of("false", "true");
  private static final List<OptionSpec> OPTIONS =
      List.of(
          new OptionSpec("transpose-b", "B is n x k", "false", BOOLEAN),
          new OptionSpec("bias", "a row is added to each row of C", "false", BOOLEAN),
          new OptionSpec(
              "epilogue",
              "function applied to each element of C",
              "none",
              List.of("none", "relu", "gelu", "silu")),
          Tuning.CHUNK_ROWS,
          Tuning.TILE_ROWS,
          Tuning.TILE_COLUMNS);

  /** For {@link java.util.ServiceLoader}. */
  public AllGatherGemmProvider() {}

  @Override
  public String name() {
    return AllGatherGemm.NAME;
  }

  @Override
  public String description() {
    return "C = A·B: A sharded by rows over the ranks, each rank with its own B";
  }

  @Override
  public Map<String, String> sizes() {
    Map<String, String> sizes = new LinkedHashMap<>();
    sizes.put("m", "rows of A, all ranks together");
    sizes.put("n", "columns of B, on each rank");
    sizes.put("k", "columns of A");
    return sizes;
  }

  @Override
  public List<OptionSpec> options() {
    return OPTIONS;
  }

  static boolean transposed(Problem problem) {
    return problem.option("transpose-b", "false").equals("true");
  }

  static boolean biased(Problem problem) {
    return problem.option("bias", "false").equals("true");
  }

  static Activation activation(Problem problem) {
    return Activation.of(problem.option("epilogue", "none"));
  }

  @Override
  public Problem problem(Topology topology, List<Request> requests) {
    Requests all = new Requests(name(), topology, requests);
    boolean transposed = all.options().getOrDefault("transpose-b", "false").equals("true");
    Shape b = all.shape(0, "b");
    Problem problem =
        new Problem(
            name(),
            topology,
            all.dtype(),
            Map.of(
                "m", all.totalRows("a"),
                "n", transposed ? b.rows() : b.columns(),
                "k", all.shape(0, "a").columns()),
            all.options());
    all.require(operands(problem), problem);
    return problem;
  }

  @Override
  public List<OperandSpec> operands(Problem problem) {
    Requests.requireOptions(name(), problem.options(), OPTIONS);
    long n = problem.size("n");
    long k = problem.size("k");
    List<OperandSpec> operands = new ArrayList<>();
    operands.add(Operands.rows("a", problem, k));
    operands.add(
        transposed(problem)
            ? Operands.rowBlocks("b", problem, n, k)
            : Operands.columnBlocks("b", false, problem, k, n));
    if (biased(problem)) {
      operands.add(Operands.columnBlocks("bias", false, problem, 1, n));
    }
    operands.add(Operands.columnBlocks("c", true, problem, problem.size("m"), n));
    Operands.requireAddressable(operands, problem);
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
  public double flops(Problem problem) {
    return 2.0
        * problem.size("m")
        * problem.size("n")
        * problem.size("k")
        * problem.topology().size();
  }

  @Override
  public Reference reference(Problem problem, Inputs inputs) {
    return new GemmReference(problem, inputs);
  }
}
