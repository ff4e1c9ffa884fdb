package org.mkernel.kernels.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.mkernel.api.Activation;
import org.mkernel.api.DType;
import org.mkernel.api.UsageException;
import org.mkernel.api.schedule.Kernel;
import org.mkernel.api.spi.HostKernelSet;
import org.mkernel.kernels.host.TileTask.Region;

class HostGemmTest {
  private static final byte GAP = 0x5a;

  private final Arena arena = Arena.ofShared();
  private final Random random = new Random(5);

  @AfterEach
  void free() {
    arena.close();
  }

  private static HostKernelSet.HostKernel kernel(
      boolean transposeB, boolean bias, Activation activation) {
    return new HostKernels()
        .kernel(
            new Kernel(
                Kernel.GEMM,
                Map.of(
                    Kernel.TRANSPOSE_B, Boolean.toString(transposeB),
                    Kernel.BIAS, Boolean.toString(bias),
                    Kernel.ACTIVATION, activation.label())));
  }

  /** A region between gaps, all of it filled with what is neither zero nor a result. */
  private Region region(DType dtype, long rows, long columns, long gap) {
    long pitch = columns * dtype.bytes() + gap;
    var memory = arena.allocate(rows * pitch + 64, 64);
    memory.fill(GAP);
    return new Region(dtype, memory.address() + gap, rows, columns, pitch);
  }

  private Region integers(DType dtype, long rows, long columns, long gap) {
    Region region = region(dtype, rows, columns, gap);
    for (long r = 0; r < rows; r++) {
      for (long c = 0; c < columns; c++) {
        TestMemory.put(dtype, at(region, r, c), random.nextInt(-3, 4));
      }
    }
    return region;
  }

  private static long at(Region region, long row, long column) {
    return region.address() + row * region.pitch() + column * region.dtype().bytes();
  }

  private static double get(Region region, long row, long column) {
    return TestMemory.get(region.dtype(), at(region, row, column));
  }

  /** Operands of a product with several panels. */
  private record Product(
      boolean transposeB, List<Region> a, List<Region> b, List<Region> bias, Region c) {
    TileTask task() {
      return new TileTask(bias.isEmpty() ? List.of(a, b) : List.of(a, b, bias), c);
    }

    double sum(long row, long column) {
      double sum = bias.isEmpty() ? 0 : get(bias.getFirst(), 0, column);
      for (int part = 0; part < a.size(); part++) {
        for (long k = 0; k < a.get(part).columns(); k++) {
          Region right = b.get(part);
          sum +=
              get(a.get(part), row, k)
                  * (transposeB ? get(right, column, k) : get(right, k, column));
        }
      }
      return sum;
    }

    long wrong(Activation activation) {
      long wrong = 0;
      for (long row = 0; row < c.rows(); row++) {
        for (long column = 0; column < c.columns(); column++) {
          float value = (float) activation.apply(sum(row, column));
          float expected = c.dtype().decode(c.dtype().encode(value));
          float got = (float) get(c, row, column);
          wrong += Float.compare(got + 0f, expected + 0f) == 0 ? 0 : 1;
        }
      }
      return wrong;
    }
  }

  private Product product(
      DType dtype, boolean transposeB, boolean bias, int m, int n, long gap, int... panels) {
    List<Region> a = new ArrayList<>();
    List<Region> b = new ArrayList<>();
    for (int k : panels) {
      a.add(integers(dtype, m, k, gap));
      b.add(transposeB ? integers(dtype, n, k, gap) : integers(dtype, k, n, gap));
    }
    return new Product(
        transposeB,
        a,
        b,
        bias ? List.of(integers(dtype, 1, n, 0)) : List.of(),
        region(dtype, m, n, gap));
  }

  static Stream<Arguments> products() {
    List<Arguments> all = new ArrayList<>();
    int[][] shapes = {
      {1, 1, 1},
      {7, 5, 3},
      {1, 33, 64},
      {129, 257, 65},
      {64, 1030, 33, 1, 40},
      {17, 3, 9, 9, 2},
      {2, 2051, 5}
    };
    for (DType dtype : DType.values()) {
      for (int[] shape : shapes) {
        for (int bits = 0; bits < 8; bits++) {
          boolean relu = (bits & 4) != 0;
          all.add(
              Arguments.of(
                  dtype,
                  (bits & 1) != 0,
                  (bits & 2) != 0,
                  relu ? Activation.RELU : Activation.NONE,
                  shape));
        }
      }
    }
    return all.stream();
  }

  @ParameterizedTest
  @MethodSource("products")
  void isExactOnIntegers(
      DType dtype, boolean transposeB, boolean bias, Activation activation, int[] shape) {
    int[] panels = new int[shape.length - 2];
    System.arraycopy(shape, 2, panels, 0, panels.length);
    try (HostKernelSet.HostKernel kernel = kernel(transposeB, bias, activation)) {
      // Without gaps, with gaps, and with gaps that leave rows at odd addresses.
      for (long gap : new long[] {0, 16, 2}) {
        Product product = product(dtype, transposeB, bias, shape[0], shape[1], gap, panels);
        kernel.run(product.task());
        assertThat(product.wrong(activation)).isZero();
        assertThat(brokenGaps(product.c(), gap)).isZero();
      }
    }
  }

  private static long brokenGaps(Region c, long gap) {
    long broken = 0;
    for (long row = 0; row <= c.rows(); row++) {
      for (long i = 0; i < gap; i++) {
        byte value =
            Memory.ALL.get(
                java.lang.foreign.ValueLayout.JAVA_BYTE, c.address() + row * c.pitch() - gap + i);
        broken += value == GAP ? 0 : 1;
      }
    }
    return broken;
  }

  @ParameterizedTest
  @EnumSource(Activation.class)
  void appliesActivationsAsTheReference(Activation activation) {
    for (DType dtype : DType.values()) {
      Product product = product(dtype, false, true, 33, 40, 8, 3);
      try (HostKernelSet.HostKernel kernel = kernel(false, true, activation)) {
        kernel.run(product.task());
      }
      for (long row = 0; row < 33; row++) {
        for (long column = 0; column < 40; column++) {
          double expected = activation.apply(product.sum(row, column));
          double ulp =
              Math.max(Math.abs(expected) * Math.pow(2, 1 - dtype.significandBits()), 1e-7);
          assertThat(get(product.c(), row, column))
              .isBetween(expected - 0.51 * ulp, expected + 0.51 * ulp);
        }
      }
    }
  }

  @Test
  void geluIsRightToTheLastBit() {
    double worst = 0;
    for (float x = -16; x <= 16; x += 0x1p-12f) {
      float expected = (float) Activation.GELU.apply(x);
      worst = Math.max(worst, Math.abs((double) Gelu.apply(x) - expected) / Math.ulp(expected));
    }
    assertThat(worst).isLessThanOrEqualTo(1);
    for (float x : new float[] {1e-30f, -1e-30f, 0f, Float.MIN_VALUE, 1e30f, -1e30f}) {
      assertThat(Gelu.apply(x)).isEqualTo((float) Activation.GELU.apply(x));
    }
    assertThat(Gelu.apply(Float.NaN)).isNaN();
    assertThat(Gelu.apply(Float.POSITIVE_INFINITY)).isEqualTo(Float.POSITIVE_INFINITY);
  }

  @ParameterizedTest
  @EnumSource(DType.class)
  void infinitiesAndNansStayInTheirRows(DType dtype) {
    for (Activation activation : new Activation[] {Activation.NONE, Activation.RELU}) {
      for (float special : new float[] {Float.NaN, Float.POSITIVE_INFINITY}) {
        Product product = product(dtype, false, false, 9, 20, 0, 6, 4);
        TestMemory.put(dtype, at(product.a().get(1), 4, 2), special);
        try (HostKernelSet.HostKernel kernel = kernel(false, false, activation)) {
          kernel.run(product.task());
        }
        // Row 4 of the reference is not finite either: the comparison covers it.
        assertThat(product.wrong(activation)).isZero();
        assertThat(get(product.c(), 4, 0)).matches(x -> !Double.isFinite(x) || x == 0);
      }
    }
  }

  @ParameterizedTest
  @EnumSource(DType.class)
  void rowsAreConvertedAsTheApiSays(DType dtype) {
    Row row = new Row();
    int count = Row.LENGTH;
    long memory = arena.allocate(4L * count, 64).address();
    int wrong = 0;
    for (int round = 0; round < 200; round++) {
      for (int i = 0; i < count; i++) {
        row.values[i] = Float.intBitsToFloat(random.nextInt());
      }
      row.values[0] = Float.NaN;
      row.values[1] = Float.NEGATIVE_INFINITY;
      row.values[2] = 65519.99f;
      row.values[3] = Float.MAX_VALUE;
      float[] values = row.values.clone();
      row.store(dtype, memory, count);
      row.load(dtype, memory, count);
      for (int i = 0; i < count; i++) {
        float expected = dtype.decode(dtype.encode(values[i]));
        wrong += Float.compare(row.values[i], expected) == 0 ? 0 : 1;
      }
    }
    assertThat(wrong).isZero();
  }

  @Test
  void productsBeyondTheLimitOfExtentsAreSplit() {
    for (boolean transposeB : new boolean[] {false, true}) {
      Product p = product(DType.F32, transposeB, false, 7, 5, 8, 11);
      Region a = p.a().getFirst();
      Region b = p.b().getFirst();
      new OpenBlas(3)
          .multiply(
              transposeB,
              7,
              5,
              11,
              a.address(),
              a.pitch() / 4,
              b.address(),
              b.pitch() / 4,
              0f,
              p.c().address(),
              p.c().pitch() / 4);
      assertThat(p.wrong(Activation.NONE)).isZero();
    }
  }

  @Test
  void shapesThatDoNotFitAreRefused() {
    Product p = product(DType.F32, false, true, 4, 5, 0, 3);
    Product other = product(DType.F32, false, true, 4, 6, 0, 2);
    try (HostKernelSet.HostKernel kernel = kernel(false, true, Activation.NONE)) {
      assertThatThrownBy(() -> kernel.run(new TileTask(List.of(p.a(), other.b(), p.bias()), p.c())))
          .isInstanceOf(UsageException.class)
          .hasMessageContaining("B of a product is 2 rows of 24 bytes; 3 x 5 f32 is needed");
      assertThatThrownBy(() -> kernel.run(new TileTask(List.of(p.a(), p.b(), other.bias()), p.c())))
          .isInstanceOf(UsageException.class)
          .hasMessageContaining("the bias of a product");
      assertThatThrownBy(() -> kernel.run(new TileTask(List.of(p.a(), List.of()), p.c())))
          .isInstanceOf(UsageException.class)
          .hasMessageContaining("1 parts of A and 0 of B");
    }
  }

  @Test
  void attributesThatMeanNothingAreRefused() {
    assertThatThrownBy(() ->
            new HostKernels().kernel(new Kernel(Kernel.GEMM, Map.of(Kernel.TRANSPOSE_B, "yes"))))
        .isInstanceOf(UsageException.class)
        .hasMessageContaining("\"yes\"");
    assertThatThrownBy(() ->
            new HostKernels().kernel(new Kernel(Kernel.GEMM, Map.of(Kernel.ACTIVATION, "tan"))))
        .isInstanceOf(UsageException.class)
        .hasMessageContaining("\"tan\"");
  }

  @Test
  void manyLanesMultiplyAtOnce() throws Exception {
    List<Product> products = new ArrayList<>();
    for (int i = 0; i < 200; i++) {
      products.add(product(i % 2 == 0 ? DType.F32 : DType.BF16, false, false, 96, 97, 0, 128));
    }
    try (ExecutorService lanes = Executors.newFixedThreadPool(products.size())) {
      List<Future<Long>> wrong = new ArrayList<>();
      for (Product product : products) {
        wrong.add(
            lanes.submit(() -> {
              try (HostKernelSet.HostKernel kernel = kernel(false, false, Activation.NONE)) {
                for (int i = 0; i < 5; i++) {
                  kernel.run(product.task());
                }
                return product.wrong(Activation.NONE);
              }
            }));
      }
      for (Future<Long> each : wrong) {
        assertThat(each.get(120, TimeUnit.SECONDS)).isZero();
      }
    }
  }

  @ParameterizedTest
  @EnumSource(DType.class)
  void allocatesNothingOnceItIsWarm(DType dtype) throws ReflectiveOperationException {
    Allocation allocation = new Allocation();
    Product product = product(dtype, false, true, 16, 24, 0, 8, 8);
    TileTask task = product.task();
    try (HostKernelSet.HostKernel kernel = kernel(false, true, Activation.GELU)) {
      long before = 0;
      for (int i = 0; i < 2_000; i++) {
        if (i == 1_000) {
          before = allocation.of(Thread.currentThread());
        }
        kernel.run(task);
      }
      assertThat(allocation.of(Thread.currentThread()) - before).isLessThan(1_000);
    }
  }
}
