package org.mkernel.testsuite;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.mkernel.api.Config;
import org.mkernel.api.DType;
import org.mkernel.api.MKernel;
import org.mkernel.api.Tensor;
import org.mkernel.api.World;
import org.mkernel.api.schedule.Topology;
import org.mkernel.api.spi.Problem;
import org.mkernel.testkit.ExactRun;

/** Every operator over emulated nodes: exact, with the bytes of the closed form, reproducible. */
@SuppressWarnings("restricted") // Outputs are spoilt by address.
final class OperatorsTest {
  private static final int[][] WORLDS = {{1, 1}, {1, 4}, {2, 2}, {2, 1}};
  private static final int[][] LARGER_WORLDS = {{3, 2}, {4, 4}, {5, 1}};
  private static final long[][] SHAPES = {
    {1, 1, 1}, {7, 5, 3}, {129, 257, 65}, {512, 384, 256}, {1000, 24, 1024}, {3, 8, 16}
  };

  static List<String> operators() {
    return Problems.names();
  }

  static Stream<Arguments> operatorsAndWorlds() {
    return operatorsAnd(WORLDS);
  }

  static Stream<Arguments> operatorsAndLargerWorlds() {
    return operatorsAnd(LARGER_WORLDS);
  }

  private static Stream<Arguments> operatorsAnd(int[][] worlds) {
    return operators().stream()
        .flatMap(o -> Stream.of(worlds).map(w -> Arguments.of(o, w[0], w[1])));
  }

  @ParameterizedTest
  @Tag("slow")
  @MethodSource("operatorsAndLargerWorlds")
  void isExactInLargerWorlds(String operator, int nodes, int ranks) {
    isExactInEveryShapeAndType(operator, nodes, ranks);
  }

  @ParameterizedTest
  @MethodSource("operatorsAndWorlds")
  void isExactInEveryShapeAndType(String operator, int nodes, int ranks) {
    for (long[] shape : SHAPES) {
      for (DType dtype : DType.values()) {
        Problem problem = Problems.of(operator, nodes, ranks, dtype, shape[0], shape[1], shape[2]);
        ExactRun.Result result = Problems.run(Config.defaults(), problem, 2);
        assertThat(result.wrong()).as("wrong elements of %s", problem).isZero();
        assertThat(result.elements()).isEqualTo(2 * Problems.outputs(problem));
        assertThat(result.report().interBytes())
            .as("bytes between nodes of %s", problem)
            .isEqualTo(Problems.interNodeBytes(problem));
      }
    }
  }

  static Stream<Arguments> gemmsAndTypes() {
    return Problems.with("epilogue").stream()
        .flatMap(o -> Stream.of(DType.values()).map(t -> Arguments.of(o, t)));
  }

  @ParameterizedTest
  @MethodSource("gemmsAndTypes")
  void knowsTransposedOperandsBiasAndRelu(String operator, DType dtype) {
    for (String transposed : List.of("false", "true")) {
      Problem problem =
          Problems.of(
              operator,
              Topology.of(2, 2),
              dtype,
              Map.of("m", 130L, "n", 70L, "k", 33L),
              Map.of("transpose-b", transposed, "bias", "true", "epilogue", "relu"));
      assertThat(Problems.run(Config.defaults(), problem, 2).wrong()).isZero();
    }
  }

  static Stream<Arguments> operatorsAndTypes() {
    return operators().stream()
        .flatMap(o -> Stream.of(DType.values()).map(t -> Arguments.of(o, t)));
  }

  @ParameterizedTest
  @MethodSource("operatorsAndTypes")
  void roundsRandomValuesNoMoreThanItsReferenceAllows(String operator, DType dtype) {
    for (String partials : List.of("operands", "f32")) {
      Problem problem =
          Problems.of(
              operator,
              Topology.of(2, 3),
              dtype,
              Map.of("m", 65L, "n", 40L, "k", 70L),
              Map.of("partials", partials, "bias", "true", "epilogue", "silu"));
      try (MKernel mkernel = MKernel.open(Config.defaults());
          World world = mkernel.local(2, 3)) {
        ExactRun.Result result =
            new ExactRun(world, Problems.operator(problem), problem).random().run();
        assertThat(result.wrong()).as("wrong elements of %s", problem).isZero();
        assertThat(result.report().interBytes()).isEqualTo(Problems.interNodeBytes(problem));
      }
    }
  }

  @ParameterizedTest
  @MethodSource("operators")
  void givesTheSameBitsUnderShapingDisorderAndAnyLanes(String operator) {
    Problem problem = Problems.of(operator, 2, 2, DType.BF16, 300, 130, 257);
    List<Config> configs = new ArrayList<>();
    for (int i = 0; i < 10; i++) {
      configs.add(Config.defaults());
    }
    configs.add(Config.defaults().option("lanes.compute", "3"));
    configs.add(Config.defaults().option("lanes.communication", "2").option("lanes.compute", "2"));
    configs.add(Config.defaults().option("emulated.bandwidth", "20000000"));
    configs.add(Config.defaults().option("emulated.latency", "300000"));
    for (int seed = 1; seed <= 5; seed++) {
      configs.add(Config.defaults().option("emulated.adversarial", Integer.toString(seed)));
    }
    Set<String> digests = new HashSet<>();
    for (Config config : configs) {
      try (MKernel mkernel = MKernel.open(config);
          World world = mkernel.local(2, 2)) {
        ExactRun.Result result =
            new ExactRun(world, Problems.operator(problem), problem).random().iterations(3).run();
        assertThat(result.wrong()).as("with %s", config.options()).isZero();
        digests.add(result.digest());
      }
    }
    assertThat(digests).hasSize(1);
  }

  @Test
  void theCheckFindsZerosSwappedTilesAndStaleEpochs() {
    assertThat(wrong(outputs -> outputs.forEach(t -> memory(t).fill((byte) 0)))).isPositive();
    assertThat(
            wrong(outputs -> {
              MemorySegment c = memory(outputs.getFirst());
              byte[] upper = c.asSlice(0, 32).toArray(ValueLayout.JAVA_BYTE);
              MemorySegment.copy(c, 32 * 16 * 4, c, 0, 32);
              MemorySegment.copy(MemorySegment.ofArray(upper), 0, c, 32 * 16 * 4, upper.length);
            }))
        .isPositive();
    Map<Long, byte[]> first = new ConcurrentHashMap<>();
    assertThat(
            wrong(outputs -> {
              MemorySegment c = memory(outputs.getFirst());
              byte[] then = first.putIfAbsent(c.address(), c.toArray(ValueLayout.JAVA_BYTE));
              if (then != null) {
                c.copyFrom(MemorySegment.ofArray(then));
              }
            }))
        .isPositive();
  }

  private static long wrong(Consumer<List<Tensor>> tamper) {
    Problem problem = Problems.of(Problems.GEMM, 2, 1, DType.F32, 64, 16, 8);
    try (MKernel mkernel = MKernel.open(Config.defaults());
        World world = mkernel.local(2, 1)) {
      return new ExactRun(world, Problems.operator(problem), problem).tamper(tamper).run().wrong();
    }
  }

  private static MemorySegment memory(Tensor tensor) {
    return MemorySegment.ofAddress(tensor.address()).reinterpret(tensor.rows() * tensor.pitch());
  }
}
