package org.mkernel.benchmarks.fused;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.Random;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import org.bytedeco.javacpp.FloatPointer;
import org.bytedeco.openblas.global.openblas_nolapack;
import org.mkernel.api.Config;
import org.mkernel.api.DType;
import org.mkernel.api.MKernel;
import org.mkernel.api.Operation;
import org.mkernel.api.Tensor;
import org.mkernel.api.World;
import org.mkernel.collectives.AllGatherGemm;

/**
 * all-gather-gemm in f32 against OpenBLAS alone that does the same products with as many threads:
 * in pairs, in random order. Arguments: nodes, ranks per node, size, pairs.
 */
public final class FusedAgainstOpenBlas {
  private FusedAgainstOpenBlas() {}

  /** Prints the median ratio with its interval of 95 %. */
  public static void main(String[] arguments) throws Exception {
    int nodes = argument(arguments, 0, 2);
    int ranks = argument(arguments, 1, 2);
    int size = argument(arguments, 2, 1024);
    int pairs = argument(arguments, 3, 25);
    int world = nodes * ranks;
    openblas_nolapack.blas_set_num_threads(1);
    double[] ratios = new double[pairs];
    double[] fused = new double[pairs];
    double[] alone = new double[pairs];
    CyclicBarrier barrier = new CyclicBarrier(world);
    boolean[] fusedFirst = new boolean[pairs];
    Random random = new Random(1);
    for (int pair = 0; pair < pairs; pair++) {
      fusedFirst[pair] = random.nextBoolean();
    }
    Config config = Config.fromEnvironment();
    try (MKernel mkernel = MKernel.open(config);
        World local = mkernel.local(nodes, ranks)) {
      local.eachLocalRank(rank -> {
        int rows = size / world;
        Tensor a = fill(rank.allocate(DType.F32, rows, size));
        Tensor whole = fill(rank.allocate(DType.F32, size, size));
        Tensor b = fill(rank.allocate(DType.F32, size, size));
        Tensor c = rank.allocate(DType.F32, size, size);
        Tensor d = rank.allocate(DType.F32, size, size);
        try (Operation operation = rank.prepare(AllGatherGemm.of(a, b, c))) {
          for (int pair = -2; pair < pairs; pair++) {
            for (int turn = 0; turn < 2; turn++) {
              boolean isFused = (turn == 0) == (pair < 0 || fusedFirst[pair]);
              barrier.await();
              long start = System.nanoTime();
              if (isFused) {
                operation.await(operation.launch(), TimeUnit.MINUTES.toNanos(1));
              } else {
                multiply(size, whole, b, d);
              }
              barrier.await();
              if (rank.index() == 0 && pair >= 0) {
                (isFused ? fused : alone)[pair] = (System.nanoTime() - start) / 1e6;
              }
            }
          }
        } catch (Exception e) {
          throw new IllegalStateException("rank " + rank.index() + " failed", e);
        }
      });
    }
    for (int pair = 0; pair < pairs; pair++) {
      ratios[pair] = alone[pair] / fused[pair];
    }
    Arrays.sort(ratios);
    Arrays.sort(fused);
    Arrays.sort(alone);
    int half = (int) Math.ceil(0.98 * Math.sqrt(pairs));
    System.out.printf(
        "all-gather-gemm f32 %d^3 on %d x %d: fused %.2f ms, OpenBLAS alone %.2f ms, ratio %.3f"
            + " (%.3f ... %.3f), %d pairs%n",
        size,
        nodes,
        ranks,
        fused[pairs / 2],
        alone[pairs / 2],
        ratios[pairs / 2],
        ratios[Math.max(0, pairs / 2 - half)],
        ratios[Math.min(pairs - 1, pairs / 2 + half)],
        pairs);
  }

  private static int argument(String[] arguments, int index, int otherwise) {
    return index < arguments.length ? Integer.parseInt(arguments[index]) : otherwise;
  }

  private static Tensor fill(Tensor tensor) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment values = arena.allocate(tensor.rows() * tensor.pitch(), 8);
      Random random = new Random(tensor.address());
      for (long i = 0; i < values.byteSize() / 4; i++) {
        values.setAtIndex(ValueLayout.JAVA_FLOAT, i, random.nextFloat() - 0.5f);
      }
      tensor.write(0, values);
    }
    return tensor;
  }

  /** Memory by its address. */
  private static final class At extends FloatPointer {
    At(long where) {
      address = where;
      limit = capacity = Integer.MAX_VALUE;
    }
  }

  private static void multiply(int size, Tensor a, Tensor b, Tensor c) {
    openblas_nolapack.cblas_sgemm(
        openblas_nolapack.CblasRowMajor,
        openblas_nolapack.CblasNoTrans,
        openblas_nolapack.CblasNoTrans,
        size,
        size,
        size,
        1f,
        new At(a.address()),
        size,
        new At(b.address()),
        size,
        0f,
        new At(c.address()),
        size);
  }
}
