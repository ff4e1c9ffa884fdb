package org.mkernel.collectives;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.Provide;
import net.jqwik.api.domains.DomainContextBase;
import org.mkernel.api.DType;
import org.mkernel.api.schedule.Topology;
import org.mkernel.api.spi.CollectiveProvider;
import org.mkernel.api.spi.OptionSpec;
import org.mkernel.api.spi.Problem;

/** Random problems of all operators, on worlds of 1 to 17 ranks and nodes of any sizes. */
final class Problems extends DomainContextBase {
  static final List<CollectiveProvider> OPERATORS =
      List.of(
          new AllGatherGemmProvider(),
          new AllGatherProvider(),
          new AllReduceProvider(),
          new AllToAllProvider(),
          new BroadcastProvider(),
          new GemmAllReduceProvider(),
          new GemmReduceScatterProvider(),
          new ReduceScatterProvider());

  static CollectiveProvider provider(Problem problem) {
    return OPERATORS.stream()
        .filter(o -> o.name().equals(problem.operator()))
        .findFirst()
        .orElseThrow();
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

  /** Those of an operator's sizes and options that it has. */
  static Problem of(
      CollectiveProvider operator,
      Topology world,
      DType dtype,
      Map<String, Long> sizes,
      Map<String, String> options) {
    Map<String, Long> own = new HashMap<>(sizes);
    own.keySet().retainAll(operator.sizes().keySet());
    Map<String, String> ownOptions = new HashMap<>(options);
    ownOptions.keySet().retainAll(operator.options().stream().map(OptionSpec::name).toList());
    return new Problem(operator.name(), world, dtype, own, ownOptions);
  }

  @Provide
  Arbitrary<Problem> problems() {
    Arbitrary<Map<String, Long>> sizes =
        Combinators.combine(
                Arbitraries.longs().between(1, 150),
                Arbitraries.longs().between(1, 20),
                Arbitraries.longs().between(1, 9))
            .as((m, n, k) -> Map.of("m", m, "n", n, "k", k));
    Arbitrary<Map<String, String>> options =
        Combinators.combine(
                Arbitraries.of("false", "true"),
                Arbitraries.of("false", "true"),
                Arbitraries.of("operands", "f32"),
                lengths(20),
                lengths(20),
                lengths(60))
            .as((transposed, bias, partials, chunk, rows, columns) ->
                Map.of(
                    "transpose-b", transposed,
                    "bias", bias,
                    "partials", partials,
                    "chunk-rows", chunk,
                    "chunk-elements", chunk,
                    "tile-rows", rows,
                    "tile-columns", columns));
    return Combinators.combine(
            Arbitraries.of(OPERATORS),
            worlds(),
            Arbitraries.of(DType.class),
            sizes,
            options,
            Arbitraries.integers().between(0, 16))
        .as((operator, world, dtype, size, option, root) -> {
          Map<String, String> all = new HashMap<>(option);
          all.put("root", Integer.toString(root % world.size()));
          return of(operator, world, dtype, size, all);
        });
  }
}
