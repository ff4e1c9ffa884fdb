package org.mkernel.testsuite;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.Map;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.mkernel.api.Config;
import org.mkernel.api.DType;
import org.mkernel.api.schedule.Topology;
import org.mkernel.api.spi.Problem;
import org.mkernel.check.CheckReport;
import org.mkernel.check.ScheduleChecker;
import org.mkernel.testkit.ExactRun;

/** Operands beyond 4 GiB, and more tasks than 16 bits count. */
final class LargeProblemsTest {
  static List<String> operators() {
    return Problems.names();
  }

  @ParameterizedTest
  @MethodSource("operators")
  void areProvenBeyondFourGibibytes(String operator) {
    // Each of the operands that are dealt out by rows has 32 GiB, and more than 2^32 elements.
    Problem problem =
        Problems.of(
            operator,
            Topology.of(2, 2),
            DType.F32,
            Map.of("m", 130_000L, "n", 66_000L, "k", 66_000L),
            Map.of("tile-rows", "8192", "tile-columns", "8192", "chunk-rows", "8192"));
    CheckReport report = ScheduleChecker.check(Problems.operator(problem).plan(problem));
    assertThat(report.findings()).isEmpty();
    assertThat(report.interBytes()).isEqualTo(Problems.interNodeBytes(problem));
    assertThat(report.interBytes()).isGreaterThan(1L << 32);
  }

  @ParameterizedTest
  @CsvSource({"all-gather-gemm, 1, 1", "all-gather-gemm, 2, 1", "gemm-reduce-scatter, 1, 2"})
  void moreTilesThanSixteenBitsCountAreExact(String operator, int nodes, int ranks) {
    Problem problem =
        Problems.of(
            operator,
            Topology.of(nodes, ranks),
            DType.F32,
            Map.of("m", 260L, "n", 256L, "k", 4L),
            Map.of("tile-rows", "1", "tile-columns", "1"));
    ExactRun.Result result = Problems.run(Config.defaults(), problem, 1);
    assertThat(result.report().tasks()).isGreaterThan((1L << 16) * nodes * ranks);
    assertThat(result.wrong()).isZero();
  }
}
