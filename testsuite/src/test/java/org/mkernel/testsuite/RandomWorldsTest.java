package org.mkernel.testsuite;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Map;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.EdgeCasesMode;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.Tag;
import org.mkernel.api.Config;
import org.mkernel.api.DType;
import org.mkernel.api.schedule.Topology;
import org.mkernel.api.spi.Problem;
import org.mkernel.testkit.ExactRun;

/** Any world up to 17 ranks, any shape, any chunking: checked, exact, and no byte too many. */
final class RandomWorldsTest {

  @Provide
  Arbitrary<Problem> gemms() {
    Arbitrary<Topology> worlds =
        Arbitraries.integers()
            .between(1, 17)
            .flatMap(nodes ->
                Arbitraries.integers()
                    .between(1, 17 / nodes)
                    .map(ranks -> Topology.of(nodes, ranks)));
    Arbitrary<Map<String, String>> options =
        Combinators.combine(
                Arbitraries.of("false", "true"),
                Arbitraries.of("false", "true"),
                Arbitraries.of("none", "relu"),
                Arbitraries.integers().between(1, 40),
                Arbitraries.integers().between(1, 40),
                Arbitraries.integers().between(1, 40))
            .as((transposed, bias, epilogue, chunk, rows, columns) ->
                Map.of(
                    "transpose-b",
                    transposed,
                    "bias",
                    bias,
                    "epilogue",
                    epilogue,
                    "chunk-rows",
                    Integer.toString(chunk),
                    "tile-rows",
                    Integer.toString(rows),
                    "tile-columns",
                    Integer.toString(columns)));
    Arbitrary<Map<String, Long>> sizes =
        Combinators.combine(
                Arbitraries.longs().between(1, 120),
                Arbitraries.longs().between(1, 50),
                Arbitraries.longs().between(1, 60))
            .as((m, n, k) -> Map.of("m", m, "n", n, "k", k));
    return Combinators.combine(worlds, Arbitraries.of(DType.class), sizes, options)
        .as((world, dtype, size, option) -> new Problem(Problems.GEMM, world, dtype, size, option));
  }

  @Property(tries = 200, edgeCases = EdgeCasesMode.NONE)
  void areExact(@ForAll("gemms") Problem problem) {
    check(problem);
  }

  @Tag("slow")
  @Property(tries = 2000, edgeCases = EdgeCasesMode.NONE)
  void manyAreExact(@ForAll("gemms") Problem problem) {
    check(problem);
  }

  private static void check(Problem problem) {
    ExactRun.Result result = Problems.run(Config.defaults(), problem, 2);
    assertThat(result.wrong()).isZero();
    assertThat(result.elements())
        .isEqualTo(2 * problem.size("m") * problem.size("n") * problem.topology().size());
    assertThat(result.report().interBytes())
        .isEqualTo(
            (problem.topology().nodes() - 1)
                * problem.size("m")
                * problem.size("k")
                * problem.dtype().bytes());
  }
}
