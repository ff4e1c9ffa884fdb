package org.mkernel.testsuite;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.HashSet;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.mkernel.api.Config;
import org.mkernel.api.DType;
import org.mkernel.api.MKernel;
import org.mkernel.api.Operation;
import org.mkernel.api.Rank;
import org.mkernel.api.Tensor;
import org.mkernel.api.World;
import org.mkernel.collectives.AllReduce;
import org.mkernel.testkit.ExactRun;

/** Sums of values that round: the same bits on every rank, and those of one order alone. */
final class ReductionOrderTest {
  private static final int NODES = 3;
  private static final int RANKS = 2;
  private static final int ELEMENTS = 6 * 64;

  @ParameterizedTest
  @ValueSource(strings = {"all-reduce", "gemm-all-reduce"})
  void everyRankHasTheSameBits(String operator) {
    for (int seed = 1; seed <= 3; seed++) {
      for (DType dtype : DType.values()) {
        var problem = Problems.of(operator, 2, 3, dtype, 70, 33, 50);
        Config config =
            Config.defaults()
                .option("emulated.adversarial", Integer.toString(seed))
                .option("lanes.compute", Integer.toString(seed))
                .option("lanes.communication", Integer.toString(4 - seed));
        try (MKernel mkernel = MKernel.open(config);
            World world = mkernel.local(2, 3)) {
          ExactRun.Result result =
              new ExactRun(world, Problems.operator(problem), problem).random().run();
          assertThat(result.wrong()).isZero();
          assertThat(result.rankDigests()).hasSize(6);
          assertThat(new HashSet<>(result.rankDigests())).hasSize(1);
        }
      }
    }
  }

  /** Addends of very different sizes, so that nearly every order gives other bits. */
  private static float[] addend(int rank) {
    Random random = new Random(rank);
    float[] values = new float[ELEMENTS];
    for (int i = 0; i < values.length; i++) {
      values[i] = Math.scalb(random.nextFloat(-1, 1), random.nextInt(-6, 7));
    }
    return values;
  }

  private static Tensor tensor(Rank rank, float[] values) {
    Tensor tensor = rank.allocate(DType.F32, 1, ELEMENTS);
    tensor.write(0, MemorySegment.ofArray(values));
    return tensor;
  }

  private static float[] values(Tensor tensor) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment memory = arena.allocate(4L * ELEMENTS, 8);
      tensor.read(0, memory);
      return memory.toArray(ValueLayout.JAVA_FLOAT);
    }
  }

  private static float[] allReduced(boolean inPlace) {
    float[][] results = new float[NODES * RANKS][];
    try (MKernel mkernel = MKernel.open(Config.defaults());
        World world = mkernel.local(NODES, RANKS)) {
      world.eachLocalRank(rank -> {
        Tensor a = tensor(rank, addend(rank.index()));
        Tensor c = inPlace ? a : rank.allocate(DType.F32, 1, ELEMENTS);
        try (Operation operation = rank.prepare(AllReduce.of(a, c))) {
          operation.await(operation.launch(), TimeUnit.SECONDS.toNanos(20));
        }
        results[rank.index()] = values(c);
      });
    }
    for (float[] result : results) {
      assertThat(result).isEqualTo(results[0]);
    }
    return results[0];
  }

  /** The owner's node by rank, then one partial sum of each other node. */
  private static float[] inOrder() {
    float[][] addends = new float[NODES * RANKS][];
    for (int rank = 0; rank < addends.length; rank++) {
      addends[rank] = addend(rank);
    }
    float[] sums = new float[ELEMENTS];
    for (int i = 0; i < ELEMENTS; i++) {
      int home = i / (ELEMENTS / addends.length) / RANKS;
      float sum = ofNode(addends, home, i);
      for (int node = 0; node < NODES; node++) {
        sum += node == home ? 0 : ofNode(addends, node, i);
      }
      sums[i] = sum;
    }
    return sums;
  }

  private static float ofNode(float[][] addends, int node, int element) {
    float sum = 0;
    for (int index = 0; index < RANKS; index++) {
      sum += addends[node * RANKS + index][element];
    }
    return sum;
  }

  @Test
  void sumsAreThoseOfTheDocumentedOrder() {
    assertThat(allReduced(false)).isEqualTo(inOrder());
  }

  @Test
  void theSumMayReplaceTheAddend() {
    assertThat(allReduced(true)).isEqualTo(allReduced(false));
  }

  /** The comparison above would notice another order: it is no sum of integers. */
  @Test
  void anotherOrderGivesOtherBits() {
    float[][] addends = new float[NODES * RANKS][];
    for (int rank = 0; rank < addends.length; rank++) {
      addends[rank] = addend(rank);
    }
    float[] flat = new float[ELEMENTS];
    for (float[] addend : addends) {
      for (int i = 0; i < ELEMENTS; i++) {
        flat[i] += addend[i];
      }
    }
    assertThat(flat).isNotEqualTo(inOrder());
  }
}
