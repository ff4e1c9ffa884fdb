package org.mkernel.collectives;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.mkernel.api.Activation;
import org.mkernel.api.DType;
import org.mkernel.api.schedule.Topology;
import org.mkernel.api.spi.CollectiveProvider;
import org.mkernel.api.spi.OperandSpec;
import org.mkernel.api.spi.Problem;

final class ReferenceTest {
  private static final int M = 7;
  private static final int N = 5;

  /** An integer that depends on where it is. */
  private static double value(int rank, String operand, long row, long column) {
    return (rank * 31 + operand.hashCode() + row * 7 + column * 13) % 11 - 5;
  }

  private static void fill(int rank, String operand, long row, double[] out) {
    for (int column = 0; column < out.length; column++) {
      out[column] = value(rank, operand, row, column);
    }
  }

  @ParameterizedTest
  @CsvSource({
    "1, false, false, NONE",
    "3, true, false, NONE",
    "4, false, true, RELU",
    "9, true, true, GELU",
    "10, false, true, SILU"
  })
  void isTheProduct(int k, boolean transposed, boolean bias, Activation activation) {
    Topology world = Topology.of(2, 2);
    CollectiveProvider.Reference reference =
        new AllGatherGemmProvider()
            .reference(
                new Problem(
                    AllGatherGemm.NAME,
                    world,
                    DType.F32,
                    Map.of("m", (long) M, "n", (long) N, "k", (long) k),
                    Map.of(
                        "transpose-b", Boolean.toString(transposed),
                        "bias", Boolean.toString(bias),
                        "epilogue", activation.label())),
                ReferenceTest::fill);
    // From several threads, as a verification does.
    IntStream.range(0, world.size() * M)
        .parallel()
        .forEach(index -> {
          int rank = index / M;
          int row = index % M;
          double[] values = new double[N];
          double[] magnitudes = new double[N];
          reference.row(rank, "c", row, values, magnitudes);
          for (int column = 0; column < N; column++) {
            double sum = bias ? value(rank, "bias", 0, column) : 0;
            double magnitude = Math.abs(sum);
            for (int i = 0; i < k; i++) {
              // Two rows a rank.
              double product =
                  value(row / 2, "a", row % 2, i)
                      * (transposed ? value(rank, "b", column, i) : value(rank, "b", i, column));
              sum += product;
              magnitude += Math.abs(product);
            }
            assertThat(values[column]).isEqualTo(activation.apply(sum));
            assertThat(magnitudes[column]).isEqualTo(magnitude);
          }
        });
  }

  @ParameterizedTest
  @CsvSource({"0, 0, 0", "1, 0, 1", "2, 1, 0", "6, 3, 0"})
  void gatheredRowsAreThoseOfTheirOwner(int row, int owner, int ownersRow) {
    CollectiveProvider.Reference reference =
        new AllGatherProvider()
            .reference(
                new Problem(
                    AllGather.NAME,
                    Topology.of(2, 2),
                    DType.F32,
                    Map.of("m", (long) M, "k", (long) N),
                    Map.of()),
                ReferenceTest::fill);
    double[] values = new double[N];
    double[] magnitudes = new double[N];
    reference.row(2, "c", row, values, magnitudes);
    for (int column = 0; column < N; column++) {
      assertThat(values[column]).isEqualTo(value(owner, "a", ownersRow, column));
      assertThat(magnitudes[column]).isEqualTo(Math.abs(values[column]));
    }
  }

  private interface Right {
    double of(int row, int column);
  }

  private static void assertRows(
      CollectiveProvider operator, int m, int rank, Map<String, String> options, Right right) {
    Topology world = Topology.of(2, 2);
    Problem problem =
        Problems.of(
            operator, world, DType.F32, Map.of("m", (long) m, "n", (long) N, "k", 3L), options);
    CollectiveProvider.Reference reference = operator.reference(problem, ReferenceTest::fill);
    OperandSpec.Shard c = operator.operands(problem).getLast().shards().get(rank);
    double[] values = new double[N];
    double[] magnitudes = new double[N];
    for (int row = 0; row < c.rows(); row++) {
      reference.row(rank, "c", row, values, magnitudes);
      for (int column = 0; column < N; column++) {
        assertThat(values[column]).isEqualTo(right.of(row, column));
        assertThat(magnitudes[column]).isGreaterThanOrEqualTo(Math.abs(values[column]));
      }
    }
  }

  private static double sum(int row, int column) {
    double sum = 0;
    for (int rank = 0; rank < 4; rank++) {
      sum += value(rank, "a", row, column);
    }
    return sum;
  }

  private static double productSum(int row, int column) {
    double sum = 0;
    for (int rank = 0; rank < 4; rank++) {
      for (int i = 0; i < 3; i++) {
        sum += value(rank, "a", row, i) * value(rank, "b", i, column);
      }
    }
    return sum;
  }

  @Test
  void sumsAreOverAllRanks() {
    // Two rows a rank, but one for the last.
    assertRows(new ReduceScatterProvider(), M, 2, Map.of(), (row, c) -> sum(4 + row, c));
    assertRows(new ReduceScatterProvider(), M, 3, Map.of(), (row, c) -> sum(6 + row, c));
    assertRows(new AllReduceProvider(), M, 3, Map.of(), ReferenceTest::sum);
    assertRows(new GemmReduceScatterProvider(), M, 2, Map.of(), (row, c) -> productSum(4 + row, c));
    assertRows(new GemmAllReduceProvider(), M, 1, Map.of(), ReferenceTest::productSum);
  }

  @Test
  void biasAndActivationComeAfterTheSum() {
    assertRows(
        new GemmAllReduceProvider(),
        M,
        1,
        Map.of("bias", "true", "epilogue", "relu"),
        (row, c) -> Math.max(0, productSum(row, c) + value(1, "bias", 0, c)));
  }

  @Test
  void movedRowsAreThoseOfTheirSource() {
    // Rank 3 has one row from each.
    assertRows(new AllToAllProvider(), M, 3, Map.of(), (row, c) -> value(row, "a", 6, c));
    assertRows(
        new AllToAllProvider(), M, 1, Map.of(), (row, c) -> value(row / 2, "a", 2 + row % 2, c));
    assertRows(
        new BroadcastProvider(), M, 3, Map.of("root", "2"), (row, c) -> value(2, "a", row, c));
  }
}
