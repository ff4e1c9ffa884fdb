package org.mkernel.testsuite;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.mkernel.api.Config;
import org.mkernel.api.DType;
import org.mkernel.api.MKernel;
import org.mkernel.api.World;
import org.mkernel.api.spi.Problem;
import org.mkernel.testkit.ExactRun;

/**
 * all-gather-gemm over emulated nodes: exact, with the bytes of the closed form, and reproducible.
 */
@SuppressWarnings("restricted") // Outputs are spoilt by address.
final class AllGatherGemmTest {
  private static final int[][] WORLDS = {{1, 1}, {1, 4}, {2, 2}, {3, 2}, {4, 4}, {2, 1}, {5, 1}};
  private static final long[][] SHAPES = {
    {1, 1, 1}, {7, 5, 3}, {129, 257, 65}, {512, 384, 256}, {1000, 24, 4096}, {3, 8, 16}
  };

  static Stream<Arguments> worldsAndShapes() {
    List<Arguments> all = new ArrayList<>();
    for (int[] world : WORLDS) {
      for (long[] shape : SHAPES) {
        all.add(Arguments.of(world[0], world[1], shape[0], shape[1], shape[2]));
      }
    }
    return all.stream();
  }

  @ParameterizedTest
  @MethodSource("worldsAndShapes")
  void isExactInEveryType(int nodes, int ranks, long m, long n, long k) {
    for (DType dtype : DType.values()) {
      Problem problem = Problems.gemm(nodes, ranks, dtype, m, n, k);
      ExactRun.Result result = Problems.run(Config.defaults(), problem, 2);
      assertThat(result.wrong()).as("wrong elements in %s", dtype).isZero();
      assertThat(result.elements()).isEqualTo(2 * m * n * nodes * ranks);
      assertThat(result.report().interBytes()).isEqualTo((nodes - 1) * m * k * dtype.bytes());
    }
  }

  @ParameterizedTest
  @EnumSource(DType.class)
  void knowsTransposedOperandsBiasAndRelu(DType dtype) {
    for (String transposed : List.of("false", "true")) {
      Problem problem =
          Problems.gemm(
              2,
              2,
              dtype,
              130,
              70,
              33,
              "transpose-b",
              transposed,
              "bias",
              "true",
              "epilogue",
              "relu");
      assertThat(Problems.run(Config.defaults(), problem, 2).wrong()).isZero();
    }
  }

  @Test
  void givesTheSameBitsUnderShapingDisorderAndAnyLanes() {
    Problem problem = Problems.gemm(2, 2, DType.F32, 300, 130, 257);
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
      ExactRun.Result result = Problems.run(config, problem, 3);
      assertThat(result.wrong()).as("with %s", config.options()).isZero();
      digests.add(result.digest());
    }
    assertThat(digests).hasSize(1);
  }

  @Test
  void theCheckFindsZerosSwappedTilesAndStaleEpochs() {
    Problem problem = Problems.gemm(2, 1, DType.F32, 64, 16, 8);
    try (MKernel mkernel = MKernel.open(Config.defaults());
        World world = mkernel.local(2, 1)) {
      ExactRun zeros =
          new ExactRun(world, mkernel.collective(Problems.GEMM), problem)
              .tamper(outputs ->
                  outputs.forEach(t ->
                      MemorySegment.ofAddress(t.address())
                          .reinterpret(t.rows() * t.pitch())
                          .fill((byte) 0)));
      assertThat(zeros.run().wrong()).isPositive();
    }
    try (MKernel mkernel = MKernel.open(Config.defaults());
        World world = mkernel.local(2, 1)) {
      ExactRun swapped =
          new ExactRun(world, mkernel.collective(Problems.GEMM), problem)
              .tamper(outputs -> {
                MemorySegment c =
                    MemorySegment.ofAddress(outputs.getFirst().address()).reinterpret(64 * 16 * 4);
                byte[] upper = c.asSlice(0, 32).toArray(java.lang.foreign.ValueLayout.JAVA_BYTE);
                MemorySegment.copy(c, 32 * 16 * 4, c, 0, 32);
                MemorySegment.copy(MemorySegment.ofArray(upper), 0, c, 32 * 16 * 4, upper.length);
              });
      assertThat(swapped.run().wrong()).isPositive();
    }
    try (MKernel mkernel = MKernel.open(Config.defaults());
        World world = mkernel.local(2, 1)) {
      Map<Long, byte[]> first = new ConcurrentHashMap<>();
      ExactRun stale =
          new ExactRun(world, mkernel.collective(Problems.GEMM), problem)
              .tamper(outputs -> {
                MemorySegment c =
                    MemorySegment.ofAddress(outputs.getFirst().address()).reinterpret(64 * 16 * 4);
                byte[] now = c.toArray(java.lang.foreign.ValueLayout.JAVA_BYTE);
                byte[] then = first.putIfAbsent(c.address(), now);
                if (then != null) {
                  c.copyFrom(MemorySegment.ofArray(then));
                }
              });
      assertThat(stale.run().wrong()).isPositive();
    }
  }
}
