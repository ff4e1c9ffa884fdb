package org.mkernel.testsuite;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.mkernel.api.Availability;
import org.mkernel.api.Config;
import org.mkernel.api.DType;
import org.mkernel.api.MKernel;
import org.mkernel.api.PluginInfo;
import org.mkernel.api.spi.Problem;
import org.mkernel.testkit.ExactRun;

/** all-gather-gemm of one rank on a GPU: exact and reproducible, whatever the shape and lanes. */
@Tag("gpu")
final class CudaTest {
  private static final Config CUDA = Config.defaults().option("device", "cuda");

  private static final long[][] SHAPES = {
    {1, 1, 1}, {7, 5, 3}, {129, 257, 65}, {512, 384, 256}, {1000, 24, 1096}, {3, 8, 16}
  };

  @BeforeEach
  void needsAGpu() {
    try (MKernel mkernel = MKernel.open(Config.defaults())) {
      Assumptions.assumeTrue(
          mkernel.plugins().stream()
              .filter(plugin -> plugin.kind().equals("device") && plugin.name().equals("cuda"))
              .map(PluginInfo::availability)
              .anyMatch(Availability.Available.class::isInstance),
          "no GPU");
    }
  }

  static Stream<Arguments> cases() {
    List<Arguments> all = new ArrayList<>();
    for (DType dtype : List.of(DType.BF16, DType.F16)) {
      for (String transposed : List.of("false", "true")) {
        for (String biased : List.of("false", "true")) {
          all.add(Arguments.of(dtype, transposed, biased));
        }
      }
    }
    return all.stream();
  }

  @ParameterizedTest
  @MethodSource("cases")
  void isExactInEveryShape(DType dtype, String transposed, String biased) {
    for (long[] shape : SHAPES) {
      Problem problem =
          Problems.gemm(
              1,
              1,
              dtype,
              shape[0],
              shape[1],
              shape[2],
              "transpose-b",
              transposed,
              "bias",
              biased,
              "epilogue",
              biased.equals("true") ? "relu" : "none");
      ExactRun.Result result = Problems.run(CUDA, problem, 3);
      assertThat(result.wrong()).as("wrong elements in %s", problem).isZero();
      assertThat(result.elements()).isEqualTo(3 * shape[0] * shape[1]);
      assertThat(result.report().device()).isEqualTo("cuda");
    }
  }

  @Test
  void isExactWhereKIsLongAndNothingIsAligned() {
    Problem problem = Problems.gemm(1, 1, DType.BF16, 4097, 33, 8191);
    assertThat(Problems.run(CUDA, problem, 1).wrong()).isZero();
  }

  @Test
  void runsPartsThatHaveNothingToDo() {
    Problem problem = Problems.gemm(1, 1, DType.BF16, 256, 256, 64);
    Config alone = CUDA.option("part", "communication");
    assertThat(Problems.run(alone, problem, 3).report().tasks()).isZero();
  }

  @Test
  void givesTheSameBitsInEveryRunAndWithAnyLanes() {
    Problem problem = Problems.gemm(1, 1, DType.F16, 300, 530, 257);
    Set<String> digests = new HashSet<>();
    for (int run = 0; run < 100; run++) {
      Config config =
          run % 4 == 0 ? CUDA : CUDA.option("lanes.compute", Integer.toString(1 + run % 131));
      ExactRun.Result result = Problems.run(config, problem, 1);
      assertThat(result.wrong()).isZero();
      digests.add(result.digest());
    }
    assertThat(digests).hasSize(1);
  }
}
