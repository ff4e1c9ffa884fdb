package org.mkernel.testsuite;

import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.mkernel.api.Collective;
import org.mkernel.api.Config;
import org.mkernel.api.DType;
import org.mkernel.api.MKernel;
import org.mkernel.api.Rank;
import org.mkernel.api.Tensor;
import org.mkernel.api.World;
import org.mkernel.api.schedule.Topology;
import org.mkernel.api.spi.CollectiveProvider;
import org.mkernel.api.spi.OperandSpec;
import org.mkernel.api.spi.OptionSpec;
import org.mkernel.api.spi.Problem;
import org.mkernel.testkit.ExactRun;

/** Problems and runs that several tests share, of every operator that is found. */
final class Problems {
  static final String GEMM = "all-gather-gemm";

  private static final Map<String, CollectiveProvider> OPERATORS = operators();

  private Problems() {}

  private static Map<String, CollectiveProvider> operators() {
    try (MKernel mkernel = MKernel.open(Config.defaults())) {
      Map<String, CollectiveProvider> all = new LinkedHashMap<>();
      mkernel.plugins().stream()
          .filter(p -> p.kind().equals("collective"))
          .forEach(p -> all.put(p.name(), mkernel.collective(p.name())));
      return all;
    }
  }

  static List<String> names() {
    return List.copyOf(OPERATORS.keySet());
  }

  /** Those that have an option. */
  static List<String> with(String option) {
    return OPERATORS.values().stream()
        .filter(o -> o.options().stream().map(OptionSpec::name).anyMatch(option::equals))
        .map(CollectiveProvider::name)
        .toList();
  }

  static CollectiveProvider operator(Problem problem) {
    return OPERATORS.get(problem.operator());
  }

  /** A problem, of those of the sizes and options that its operator has. */
  static Problem of(
      String operator,
      Topology world,
      DType dtype,
      Map<String, Long> sizes,
      Map<String, String> options) {
    CollectiveProvider provider = OPERATORS.get(operator);
    Map<String, Long> own = new HashMap<>(sizes);
    own.keySet().retainAll(provider.sizes().keySet());
    Map<String, String> ownOptions = new HashMap<>(options);
    ownOptions.keySet().retainAll(provider.options().stream().map(OptionSpec::name).toList());
    return new Problem(operator, world, dtype, own, ownOptions);
  }

  static Problem of(String operator, int nodes, int ranks, DType dtype, long m, long n, long k) {
    return of(operator, Topology.of(nodes, ranks), dtype, Map.of("m", m, "n", n, "k", k), Map.of());
  }

  static Problem gemm(
      int nodes, int ranks, DType dtype, long m, long n, long k, String... options) {
    Map<String, String> map = new HashMap<>();
    for (int i = 0; i < options.length; i += 2) {
      map.put(options[i], options[i + 1]);
    }
    return of(GEMM, Topology.of(nodes, ranks), dtype, Map.of("m", m, "n", n, "k", k), map);
  }

  /** An operation of a problem, with new tensors of one rank. */
  static Collective collective(Rank rank, Problem problem) {
    Map<String, Tensor> tensors = new HashMap<>();
    for (OperandSpec operand : operator(problem).operands(problem)) {
      OperandSpec.Shard shard = operand.shards().get(rank.index());
      tensors.put(operand.name(), rank.allocate(problem.dtype(), shard.rows(), shard.columns()));
    }
    return Collective.of(problem.operator(), tensors, problem.options());
  }

  /** The payload that must cross between nodes, written down once more. */
  static long interNodeBytes(Problem problem) {
    Topology world = problem.topology();
    long m = problem.size("m");
    int others = world.nodes() - 1;
    long size =
        problem.option("partials", "").equals("f32") ? DType.F32.bytes() : problem.dtype().bytes();
    return switch (problem.operator()) {
      case "all-gather", "all-gather-gemm" -> others * m * problem.size("k") * size;
      case "broadcast" -> others * m * problem.size("n") * problem.dtype().bytes();
      case "all-to-all" -> {
        // Blocks for ranks of other nodes; the last ranks have less rows, or none.
        long rows = 0;
        long block = Math.ceilDiv(m, world.size());
        for (int target = 0; target < world.size(); target++) {
          int sources = world.size() - world.ranks(world.node(target));
          rows += sources * Math.clamp(m - target * block, 0, block);
        }
        yield rows * problem.size("n") * problem.dtype().bytes();
      }
      case "reduce-scatter", "gemm-reduce-scatter" -> others * m * problem.size("n") * size;
      case "all-reduce", "gemm-all-reduce" ->
          others * m * problem.size("n") * (size + problem.dtype().bytes());
      default -> throw new AssertionError("no closed form of " + problem.operator());
    };
  }

  /** The elements of all outputs of all ranks. */
  static long outputs(Problem problem) {
    return operator(problem).operands(problem).stream()
        .filter(o -> o.output())
        .flatMap(o -> o.shards().stream())
        .mapToLong(s -> s.rows() * s.columns())
        .sum();
  }

  static ExactRun.Result run(Config config, Problem problem, int iterations) {
    int nodes = problem.topology().nodes();
    try (MKernel mkernel = MKernel.open(config);
        World world = mkernel.local(nodes, problem.topology().size() / nodes)) {
      return new ExactRun(world, mkernel.collective(problem.operator()), problem)
          .iterations(iterations)
          .run();
    }
  }
}
