package org.mkernel.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.mkernel.api.DType;
import org.mkernel.api.UsageException;
import org.mkernel.api.spi.Problem;
import org.mkernel.cli.io.TensorWriter;

/** Inputs by rank and row, generated and from files. */
final class InputDataTest {
  @TempDir Path folder;

  private static double[] row(InputData data, int rank, String operand, long row, int columns) {
    double[] values = new double[columns];
    data.row(rank, operand, row, values);
    return values;
  }

  /** A file whose element at (row, column) is 100 · row + column + a third. */
  private Path file(long rows, int columns) {
    Path path = folder.resolve(rows + "x" + columns + ".npy");
    try (TensorWriter writer = TensorWriter.create(path, DType.F32, rows, columns)) {
      for (long row = 0; row < rows; row++) {
        float[] values = new float[columns];
        for (int column = 0; column < columns; column++) {
          values[column] = 100 * row + column + 1 / 3f;
        }
        java.nio.ByteBuffer bytes =
            java.nio.ByteBuffer.allocate(4 * columns).order(java.nio.ByteOrder.LITTLE_ENDIAN);
        bytes.asFloatBuffer().put(values);
        writer.write(row, MemorySegment.ofBuffer(bytes));
      }
      writer.commit();
    }
    return path;
  }

  @Test
  void generatedAreSmallIntegersThatDependOnSeedAndPlace() {
    Problem problem = TestInputs.problem(2, DType.F32, 40, 30, 50, Map.of());
    try (InputData data = TestInputs.of(problem, 1, Map.of());
        InputData other = TestInputs.of(problem, 2, Map.of())) {
      assertThat(data.isGenerated()).isTrue();
      double[] first = row(data, 0, "a", 0, 50);
      assertThat(first).containsOnly(-2, -1, 0, 1, 2);
      assertThat(row(data, 0, "a", 0, 50)).isEqualTo(first);
      assertThat(row(data, 0, "a", 1, 50)).isNotEqualTo(first);
      assertThat(row(data, 1, "a", 0, 50)).isNotEqualTo(first);
      assertThat(row(data, 0, "b", 0, 50)).isNotEqualTo(first);
      assertThat(row(other, 0, "a", 0, 50)).isNotEqualTo(first);
    }
  }

  @Test
  void generatedAreTheSameInAnyWorld() {
    Problem one = TestInputs.problem(1, DType.F32, 40, 30, 50, Map.of());
    Problem four = TestInputs.problem(4, DType.F32, 40, 30, 50, Map.of());
    try (InputData whole = TestInputs.of(one, 1, Map.of());
        InputData shards = TestInputs.of(four, 1, Map.of())) {
      assertThat(row(shards, 3, "a", 4, 50)).isEqualTo(row(whole, 0, "a", 34, 50));
    }
  }

  @Test
  void aFileIsShardedAsTheOperatorWants() {
    Problem problem = TestInputs.problem(2, DType.F32, 6, 4, 5, Map.of());
    Map<String, String> files = Map.of("a", file(6, 5).toString(), "b", file(5, 8).toString());
    try (InputData data = TestInputs.of(problem, 1, files)) {
      assertThat(data.isGenerated()).isFalse();
      assertThat(row(data, 1, "a", 2, 5)[0]).isEqualTo(500 + 1 / 3f);
      assertThat(row(data, 1, "b", 1, 4)[0]).isEqualTo(104 + 1 / 3f);
    }
  }

  @Test
  void aFileOfOneShardIsTheSameForEveryRank() {
    Problem problem = TestInputs.problem(2, DType.F32, 6, 4, 5, Map.of());
    try (InputData data = TestInputs.of(problem, 1, Map.of("b", file(5, 4).toString()))) {
      assertThat(row(data, 1, "b", 3, 4)).isEqualTo(row(data, 0, "b", 3, 4));
    }
  }

  @Test
  void valuesAreRoundedToTheOperatorsType() {
    Problem problem = TestInputs.problem(1, DType.BF16, 6, 4, 5, Map.of());
    try (InputData data = TestInputs.of(problem, 1, Map.of("a", file(6, 5).toString()))) {
      // Next to 100.33 bf16 has 100 and 100.5.
      assertThat(row(data, 0, "a", 1, 5)[0]).isEqualTo(100.5);
    }
  }

  @Test
  void aWrongShapeIsRefusedWithBothShapes() {
    Problem problem = TestInputs.problem(2, DType.F32, 6, 4, 5, Map.of());
    String file = file(5, 6).toString();
    assertThatThrownBy(() -> TestInputs.of(problem, 1, Map.of("b", file)))
        .isInstanceOf(UsageException.class)
        .hasMessageContainingAll("5 x 6", "5 x 8", "5 x 4 for every rank");
  }
}
