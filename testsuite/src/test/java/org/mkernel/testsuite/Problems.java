package org.mkernel.testsuite;

import java.util.HashMap;
import java.util.Map;
import org.mkernel.api.Config;
import org.mkernel.api.DType;
import org.mkernel.api.MKernel;
import org.mkernel.api.World;
import org.mkernel.api.schedule.Topology;
import org.mkernel.api.spi.Problem;
import org.mkernel.testkit.ExactRun;

/** Problems and runs that several tests share. */
final class Problems {
  static final String GEMM = "all-gather-gemm";

  private Problems() {}

  static Problem gemm(
      int nodes, int ranks, DType dtype, long m, long n, long k, String... options) {
    Map<String, String> map = new HashMap<>();
    for (int i = 0; i < options.length; i += 2) {
      map.put(options[i], options[i + 1]);
    }
    return new Problem(GEMM, Topology.of(nodes, ranks), dtype, Map.of("m", m, "n", n, "k", k), map);
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
