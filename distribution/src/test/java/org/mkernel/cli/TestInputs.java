package org.mkernel.cli;

import java.util.Map;
import org.mkernel.api.Config;
import org.mkernel.api.DType;
import org.mkernel.api.MKernel;
import org.mkernel.api.schedule.Topology;
import org.mkernel.api.spi.CollectiveProvider;
import org.mkernel.api.spi.Problem;

/** Inputs of an all-gather-gemm. */
final class TestInputs {
  static final CollectiveProvider GEMM = operator();

  private TestInputs() {}

  private static CollectiveProvider operator() {
    try (MKernel mkernel = MKernel.open(Config.defaults())) {
      return mkernel.collective("all-gather-gemm");
    }
  }

  static Problem problem(
      int ranks, DType dtype, long m, long n, long k, Map<String, String> options) {
    return new Problem(
        GEMM.name(), Topology.of(1, ranks), dtype, Map.of("m", m, "n", n, "k", k), options);
  }

  static InputData of(Problem problem, long seed, Map<String, String> files) {
    return new InputData(GEMM, problem, seed, files);
  }
}
