package org.mkernel.cli;

import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.mkernel.api.DType;
import org.mkernel.api.Rank;
import org.mkernel.api.spi.OperandSpec;
import org.mkernel.api.spi.Problem;

/**
 * Measures two devices in turn on one product. Samples come in pairs, in random order within a
 * pair, after an idle gap of random length, so that clocks and temperature favour none; operands
 * rotate, so that none are found in a cache.
 */
final class GemmDuel {
  private static final int MOST_SETS = 64;

  /**
   * How to measure.
   *
   * @param pairs samples of each device
   * @param burstNanos how long a sample should take at least
   * @param idleNanos the mean gap before a sample
   * @param rotateBytes how much memory the sets of operands take at least
   * @param seed of gaps, orders and operands
   */
  record Method(int pairs, long burstNanos, long idleNanos, long rotateBytes, long seed) {}

  /**
   * What came out.
   *
   * @param sets sets of operands, all of which each sample runs through
   * @param nanos of the one device, by pair
   * @param againstNanos of the other
   * @param compared elements of the product that were compared
   * @param different how many differ by more than rounding explains
   */
  record Result(int sets, double[] nanos, double[] againstNanos, long compared, long different) {
    /** How many times as fast the one is, by pairs. */
    MedianInterval ratio() {
      double[] ratios = new double[nanos.length];
      for (int i = 0; i < ratios.length; i++) {
        ratios[i] = againstNanos[i] / nanos[i];
      }
      return MedianInterval.of(ratios);
    }
  }

  private final Method method;
  private final Problem problem;
  private final List<OperandSpec> operands;

  GemmDuel(Method method, Problem problem, List<OperandSpec> operands) {
    this.method = method;
    this.problem = problem;
    this.operands = operands;
  }

  Result run(Rank rank, Rank against) {
    RandomElements random = new RandomElements(problem.dtype(), method.seed());
    try (GemmContestant one = new GemmContestant(rank, problem, operands, random);
        GemmContestant other = new GemmContestant(against, problem, operands, random)) {
      one.grow(1);
      other.grow(1);
      double slowest = Math.max(one.sample(), other.sample());
      long sets =
          Math.max(
              Math.ceilDiv(method.rotateBytes(), one.setBytes()) + 2,
              (long) Math.ceil(method.burstNanos() / slowest) + 1);
      int count = (int) Math.min(MOST_SETS, sets);
      one.grow(count);
      other.grow(count);
      double[][] nanos = measure(one, other);
      long[] compared = compare(one, other);
      return new Result(count, nanos[0], nanos[1], compared[0], compared[1]);
    }
  }

  private double[][] measure(GemmContestant one, GemmContestant other) {
    SplittableRandom random = new SplittableRandom(method.seed());
    double[][] nanos = new double[2][method.pairs()];
    for (int pair = 0; pair < method.pairs(); pair++) {
      int first = random.nextInt(2);
      for (int turn = 0; turn < 2; turn++) {
        idle(random);
        int who = turn == 0 ? first : 1 - first;
        nanos[who][pair] = (who == 0 ? one : other).sample();
      }
    }
    return nanos;
  }

  /** From half of the mean gap to one and a half. */
  private void idle(SplittableRandom random) {
    long end = System.nanoTime() + (long) (method.idleNanos() * (0.5 + random.nextDouble()));
    for (long left = end - System.nanoTime(); left > 0; left = end - System.nanoTime()) {
      LockSupport.parkNanos(Math.min(left, TimeUnit.MILLISECONDS.toNanos(10)));
    }
  }

  private long[] compare(GemmContestant one, GemmContestant other) {
    long m = problem.size("m");
    long compared = 0;
    long different = 0;
    for (long row : new long[] {0, m / 2, m - 1}) {
      float[] a = one.row(row);
      float[] b = other.row(row);
      for (int column = 0; column < a.length; column++) {
        compared++;
        // Of NaN every comparison is false: it never passes.
        if (!(Math.abs(a[column] - b[column]) <= tolerance(a[column], b[column]))) {
          different++;
        }
      }
    }
    return new long[] {compared, different};
  }

  /** A rounding of each to the type, and sums in fp32 in another order. */
  private double tolerance(float a, float b) {
    DType dtype = problem.dtype();
    double rounding = (Math.abs(a) + Math.abs(b)) * Math.scalb(1.0, -dtype.significandBits());
    return rounding + problem.size("k") * 0x1p-23;
  }
}
