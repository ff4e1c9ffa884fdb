package org.mkernel.collectives;

import java.util.Map;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.Provide;
import net.jqwik.api.domains.DomainContextBase;
import org.mkernel.api.DType;
import org.mkernel.api.schedule.Topology;
import org.mkernel.api.spi.CollectiveProvider;
import org.mkernel.api.spi.Problem;

/** Random problems of both operators, on worlds of 1 to 17 ranks and nodes of any sizes. */
final class Problems extends DomainContextBase {
  static CollectiveProvider provider(Problem problem) {
    return problem.operator().equals(AllGather.NAME)
        ? new AllGatherProvider()
        : new AllGatherGemmProvider();
  }

  private static Arbitrary<Topology> worlds() {
    Arbitrary<Topology> equal =
        Arbitraries.integers()
            .between(1, 17)
            .flatMap(nodes ->
                Arbitraries.integers()
                    .between(1, 17 / nodes)
                    .map(ranks -> Topology.of(nodes, ranks)));
    Arbitrary<Topology> ragged =
        Arbitraries.integers()
            .between(0, 3)
            .array(int[].class)
            .ofMinSize(1)
            .ofMaxSize(13)
            .map(drawn -> {
              // Each of the four nodes is used at least once.
              int[] nodes = new int[drawn.length + 4];
              System.arraycopy(drawn, 0, nodes, 0, drawn.length);
              for (int node = 0; node < 4; node++) {
                nodes[drawn.length + node] = node;
              }
              return Topology.of(nodes);
            });
    return Arbitraries.oneOf(equal, ragged);
  }

  private static Arbitrary<String> lengths(int most) {
    return Arbitraries.integers().between(1, most).map(String::valueOf);
  }

  @Provide
  Arbitrary<Problem> gemms() {
    Arbitrary<Map<String, Long>> sizes =
        Combinators.combine(
                Arbitraries.longs().between(1, 150),
                Arbitraries.longs().between(1, 50),
                Arbitraries.longs().between(1, 9))
            .as((m, n, k) -> Map.of("m", m, "n", n, "k", k));
    Arbitrary<Map<String, String>> options =
        Combinators.combine(
                Arbitraries.of("false", "true"),
                Arbitraries.of("false", "true"),
                lengths(20),
                lengths(20),
                lengths(60))
            .as((transposed, bias, chunk, rows, columns) ->
                Map.of(
                    "transpose-b", transposed,
                    "bias", bias,
                    "chunk-rows", chunk,
                    "tile-rows", rows,
                    "tile-columns", columns));
    return Combinators.combine(worlds(), Arbitraries.of(DType.class), sizes, options)
        .as((world, dtype, size, option) ->
            new Problem(AllGatherGemm.NAME, world, dtype, size, option));
  }

  @Provide
  Arbitrary<Problem> gathers() {
    return Combinators.combine(
            worlds(),
            Arbitraries.of(DType.class),
            Arbitraries.longs().between(1, 150),
            Arbitraries.longs().between(1, 9),
            lengths(20))
        .as((world, dtype, m, k, chunk) ->
            new Problem(
                AllGather.NAME, world, dtype, Map.of("m", m, "k", k), Map.of("chunk-rows", chunk)));
  }

  @Provide
  Arbitrary<Problem> problems() {
    return Arbitraries.oneOf(gemms(), gathers());
  }
}
