package org.mkernel.testsuite;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.mkernel.api.Collective;
import org.mkernel.api.Config;
import org.mkernel.api.DType;
import org.mkernel.api.MKernel;
import org.mkernel.api.Operation;
import org.mkernel.api.Rank;
import org.mkernel.api.Tensor;
import org.mkernel.api.UsageException;
import org.mkernel.api.World;
import org.mkernel.api.spi.OperandSpec;
import org.mkernel.api.spi.Problem;

/** Operands in memory of the caller: shared by operations, or by input and output of one. */
final class InPlaceTest {
  private static final int NODES = 2;
  private static final int RANKS = 2;
  private static final int LAUNCHES = 3;

  private static Problem problem(String operator) {
    // The last rank has less rows than the others.
    return Problems.of(operator, NODES, RANKS, DType.F32, 13, 70, 70);
  }

  static Stream<Arguments> operatorsAndWires() {
    return Problems.names().stream()
        .filter(name -> place(problem(name), 0).isPresent())
        .flatMap(name -> Stream.of("0", "1", "2").map(seed -> Arguments.of(name, seed)));
  }

  private static OptionalLong place(Problem problem, int rank) {
    return Problems.operator(problem).inPlace(problem, rank);
  }

  @Test
  void fourOperatorsAreDoneInPlace() {
    assertThat(operatorsAndWires().map(a -> a.get()[0]).distinct())
        .containsExactlyInAnyOrder("all-gather", "all-reduce", "broadcast", "reduce-scatter");
  }

  @ParameterizedTest
  @MethodSource("operatorsAndWires")
  void inPlaceGivesTheSameBits(String operator, String adversary) {
    Problem problem = problem(operator);
    Config config = Config.defaults().option("emulated.adversarial", adversary);
    assertThat(results(config, problem, true)).isDeepEqualTo(results(config, problem, false));
  }

  /** By rank, what each launch gave. */
  private static float[][] results(Config config, Problem problem, boolean inPlace) {
    OperandSpec a = Problems.operator(problem).operands(problem).getFirst();
    OperandSpec c = Problems.operator(problem).operands(problem).getLast();
    float[][] results = new float[NODES * RANKS][];
    try (Arena arena = Arena.ofShared();
        MKernel mkernel = MKernel.open(config);
        World world = mkernel.local(NODES, RANKS)) {
      world.eachLocalRank(rank -> {
        MemorySegment from = memory(a, rank, arena);
        MemorySegment to = memory(c, rank, arena);
        long place = place(problem, rank.index()).orElseThrow();
        if (inPlace && from.byteSize() > 0 && to.byteSize() > 0) {
          MemorySegment both = arena.allocate(Math.max(from.byteSize(), to.byteSize()), 8);
          from = both.asSlice(Math.max(0, place), from.byteSize());
          to = both.asSlice(Math.max(0, -place), to.byteSize());
        }
        Map<String, Tensor> tensors = Map.of("a", tensor(a, rank, from), "c", tensor(c, rank, to));
        try (Operation operation =
            rank.prepare(Collective.of(problem.operator(), tensors, problem.options()))) {
          float[] all = {};
          for (int launch = 0; launch < LAUNCHES; launch++) {
            Random random = new Random(launch * 100L + rank.index());
            for (long i = 0; i < from.byteSize() / Float.BYTES; i++) {
              from.setAtIndex(ValueLayout.JAVA_FLOAT, i, random.nextFloat());
            }
            operation.await(operation.launch(), TimeUnit.SECONDS.toNanos(20));
            float[] result = to.toArray(ValueLayout.JAVA_FLOAT);
            all = Arrays.copyOf(all, all.length + result.length);
            System.arraycopy(result, 0, all, all.length - result.length, result.length);
          }
          results[rank.index()] = all;
        }
      });
    }
    return results;
  }

  private static MemorySegment memory(OperandSpec operand, Rank rank, Arena arena) {
    OperandSpec.Shard shard = operand.shards().get(rank.index());
    return arena.allocate(shard.rows() * shard.columns() * Float.BYTES, 8);
  }

  private static Tensor tensor(OperandSpec operand, Rank rank, MemorySegment memory) {
    OperandSpec.Shard shard = operand.shards().get(rank.index());
    return rank.borrow(memory.address(), DType.F32, shard.rows(), shard.columns());
  }

  @Test
  void overlapsThatWouldSpoilTheResultAreRefused() {
    refuses("all-to-all", base -> base, "is not done in place");
    refuses("gemm-all-reduce", base -> base + 64, "is not done in place");
    refuses("all-reduce", base -> base + 64, "in place it is 0 bytes");
  }

  private static void refuses(String operator, Function<Long, Long> placeOfC, String why) {
    Problem problem = Problems.of(operator, 1, 2, DType.F32, 16, 16, 16);
    try (Arena arena = Arena.ofShared();
        MKernel mkernel = MKernel.open(Config.defaults());
        World world = mkernel.local(1, 2)) {
      assertThatThrownBy(() ->
              world.eachLocalRank(rank -> {
                long base = arena.allocate(1 << 16, 8).address();
                Map<String, Tensor> tensors = new java.util.HashMap<>();
                List<OperandSpec> operands = Problems.operator(problem).operands(problem);
                for (OperandSpec operand : operands) {
                  OperandSpec.Shard shard = operand.shards().get(rank.index());
                  long address =
                      operand.name().equals("b")
                          ? base + (1 << 15)
                          : operand.output() ? placeOfC.apply(base) : base;
                  tensors.put(
                      operand.name(),
                      rank.borrow(address, DType.F32, shard.rows(), shard.columns()));
                }
                Operation _ = rank.prepare(Collective.of(operator, tensors, Map.of()));
              }))
          .isInstanceOf(UsageException.class)
          .hasMessageContaining("operands a and c of rank")
          .hasMessageContaining(why);
    }
  }

  /** Memory that is borrowed once serves one operation as its output, and the next as its input. */
  @Test
  void aBorrowedTensorServesSeveralOperations() {
    try (Arena arena = Arena.ofShared();
        MKernel mkernel = MKernel.open(Config.defaults());
        World world = mkernel.local(NODES, RANKS)) {
      world.eachLocalRank(rank -> {
        MemorySegment memory = arena.allocate(16 * Float.BYTES, 8);
        Tensor part = rank.borrow(memory.address() + 16L * rank.index(), DType.F32, 1, 4);
        Tensor whole = rank.borrow(memory.address(), DType.F32, 4, 4);
        try (Operation gather =
                rank.prepare(Collective.of("all-gather", Map.of("a", part, "c", whole), Map.of()));
            Operation sum =
                rank.prepare(
                    Collective.of("all-reduce", Map.of("a", whole, "c", whole), Map.of()))) {
          for (int round = 1; round <= LAUNCHES; round++) {
            for (long i = 0; i < 4; i++) {
              memory.setAtIndex(ValueLayout.JAVA_FLOAT, 4L * rank.index() + i, round);
            }
            gather.await(gather.launch(), TimeUnit.SECONDS.toNanos(20));
            sum.await(sum.launch(), TimeUnit.SECONDS.toNanos(20));
            float[] expected = new float[16];
            Arrays.fill(expected, NODES * RANKS * round);
            assertThat(memory.toArray(ValueLayout.JAVA_FLOAT)).isEqualTo(expected);
          }
          assertThatThrownBy(whole::close).isInstanceOf(UsageException.class);
        }
        whole.close();
      });
    }
  }
}
