package org.mkernel.testsuite;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.HashMap;
import java.util.Map;
import java.util.stream.IntStream;
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
import org.mkernel.check.CheckReport;
import org.mkernel.check.ScheduleChecker;
import org.mkernel.testkit.ExactRun;

/**
 * Every operator in any world up to 17 ranks, any shape, any chunking: checked, exact, and no byte
 * too many.
 */
final class RandomWorldsTest {

  /** Up to 17 ranks on equal nodes, which a process can emulate. */
  @Provide
  Arbitrary<Problem> problems() {
    return problems(
        Arbitraries.integers()
            .between(1, 17)
            .flatMap(nodes ->
                Arbitraries.integers()
                    .between(1, 17 / nodes)
                    .map(ranks -> Topology.of(nodes, ranks))));
  }

  /** Four nodes of any sizes, with ranks in any places. */
  @Provide
  Arbitrary<Problem> raggedProblems() {
    return problems(
        Arbitraries.integers()
            .between(0, 3)
            .array(int[].class)
            .ofMaxSize(13)
            .map(drawn ->
                // Each node is used at least once.
                Topology.of(
                    IntStream.concat(IntStream.of(drawn), IntStream.range(0, 4)).toArray())));
  }

  private static Arbitrary<Problem> problems(Arbitrary<Topology> worlds) {
    Arbitrary<Map<String, String>> cuts =
        Combinators.combine(lengths(), lengths(), lengths())
            .as((chunk, rows, columns) ->
                Map.of(
                    "chunk-rows", chunk,
                    "chunk-elements", chunk,
                    "tile-rows", rows,
                    "tile-columns", columns));
    Arbitrary<Map<String, String>> options =
        Combinators.combine(
                Arbitraries.of("false", "true"),
                Arbitraries.of("false", "true"),
                Arbitraries.of("none", "relu"),
                Arbitraries.of("operands", "f32"),
                cuts)
            .as((transposed, bias, epilogue, partials, cut) -> {
              Map<String, String> all = new HashMap<>(cut);
              all.put("transpose-b", transposed);
              all.put("bias", bias);
              all.put("epilogue", epilogue);
              all.put("partials", partials);
              return all;
            });
    Arbitrary<Map<String, Long>> sizes =
        Combinators.combine(
                Arbitraries.longs().between(1, 120),
                Arbitraries.longs().between(1, 50),
                Arbitraries.longs().between(1, 60))
            .as((m, n, k) -> Map.of("m", m, "n", n, "k", k));
    return Combinators.combine(
            Arbitraries.of(Problems.names()), worlds, Arbitraries.of(DType.class), sizes, options)
        .as(Problems::of);
  }

  private static Arbitrary<String> lengths() {
    return Arbitraries.integers().between(1, 40).map(String::valueOf);
  }

  @Property(tries = 300, edgeCases = EdgeCasesMode.NONE)
  void areProvenOnNodesOfAnySizes(@ForAll("raggedProblems") Problem problem) {
    CheckReport report = ScheduleChecker.check(Problems.operator(problem).plan(problem));
    assertThat(report.findings()).isEmpty();
    assertThat(report.interBytes()).isEqualTo(Problems.interNodeBytes(problem));
  }

  @Property(tries = 300, edgeCases = EdgeCasesMode.NONE)
  void areExact(@ForAll("problems") Problem problem) {
    check(problem);
  }

  @Tag("slow")
  @Property(tries = 3000, edgeCases = EdgeCasesMode.NONE)
  void manyAreExact(@ForAll("problems") Problem problem) {
    check(problem);
  }

  private static void check(Problem problem) {
    ExactRun.Result result = Problems.run(Config.defaults(), problem, 2);
    assertThat(result.wrong()).isZero();
    assertThat(result.elements()).isEqualTo(2 * Problems.outputs(problem));
    assertThat(result.report().interBytes()).isEqualTo(Problems.interNodeBytes(problem));
  }
}
