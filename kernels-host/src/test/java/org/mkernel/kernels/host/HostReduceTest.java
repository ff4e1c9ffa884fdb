package org.mkernel.kernels.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.mkernel.api.Activation;
import org.mkernel.api.DType;
import org.mkernel.api.UsageException;
import org.mkernel.api.schedule.Kernel;
import org.mkernel.api.spi.HostKernelSet;
import org.mkernel.kernels.host.TileTask.Region;

class HostReduceTest {
  private final Arena arena = Arena.ofShared();
  private final Random random = new Random(7);

  @AfterEach
  void free() {
    arena.close();
  }

  private static HostKernelSet.HostKernel kernel(boolean bias, Activation activation) {
    return new HostKernels()
        .kernel(
            new Kernel(
                Kernel.REDUCE,
                Map.of(
                    Kernel.BIAS, Boolean.toString(bias),
                    Kernel.ACTIVATION, activation.label())));
  }

  private Region region(DType dtype, long rows, long columns, long gap) {
    long pitch = columns * dtype.bytes() + gap;
    Region region =
        new Region(dtype, arena.allocate(rows * pitch, 64).address(), rows, columns, pitch);
    for (long r = 0; r < rows; r++) {
      for (long c = 0; c < columns; c++) {
        float value = dtype.decode(dtype.encode(random.nextFloat(-2, 2)));
        TestMemory.put(dtype, at(region, r, c), value);
      }
    }
    return region;
  }

  private static long at(Region region, long row, long column) {
    return region.address() + row * region.pitch() + column * region.dtype().bytes();
  }

  private static float get(Region region, long row, long column) {
    return TestMemory.get(region.dtype(), at(region, row, column));
  }

  @ParameterizedTest
  @CsvSource({
    "BF16, F32, 5, 1500, 0, false, NONE",
    "BF16, F32, 5, 1500, 8, true, RELU",
    "F16, F16, 3, 7, 6, true, NONE",
    "F32, F32, 1, 2100, 0, true, SILU",
    "F32, BF16, 9, 1, 0, false, RELU"
  })
  void addsInOrderThenFinishesThenRoundsOnce(
      DType out, DType part, int rows, int columns, int gap, boolean bias, Activation activation) {
    List<Region> parts =
        List.of(
            region(out, rows, columns, gap),
            region(part, rows, columns, 0),
            region(part, rows, columns, gap));
    Region row = region(out, 1, columns, 0);
    Region sum = region(out, rows, columns, gap);
    try (HostKernelSet.HostKernel kernel = kernel(bias, activation)) {
      kernel.run(new TileTask(bias ? List.of(parts, List.of(row)) : List.of(parts), sum));
    }
    for (int r = 0; r < rows; r++) {
      for (int c = 0; c < columns; c++) {
        float expected = get(parts.get(0), r, c) + get(parts.get(1), r, c);
        expected += get(parts.get(2), r, c);
        if (bias) {
          expected += get(row, 0, c);
        }
        expected = (float) activation.apply(expected);
        assertThat(get(sum, r, c)).isEqualTo(out.decode(out.encode(expected)));
      }
    }
  }

  @Test
  void shapesThatDoNotFitAreRefused() {
    Region sum = region(DType.F32, 2, 3, 0);
    Region other = region(DType.F32, 3, 2, 0);
    try (HostKernelSet.HostKernel kernel = kernel(true, Activation.NONE)) {
      assertThatThrownBy(() -> kernel.run(new TileTask(List.of(List.of(sum, other)), sum)))
          .isInstanceOf(UsageException.class)
          .hasMessage("a part of a sum is 3 x 2; 2 x 3 is needed");
      assertThatThrownBy(() -> kernel.run(new TileTask(List.of(List.of(sum), List.of(other)), sum)))
          .isInstanceOf(UsageException.class)
          .hasMessage("the bias of a sum is 3 x 2; 1 x 3 is needed");
      assertThatThrownBy(() -> kernel.run(new TileTask(List.of(), sum)))
          .isInstanceOf(UsageException.class)
          .hasMessage("a sum has no parts; at least 1 is needed");
    }
  }
}
