package org.mkernel.collectives;

import java.lang.ref.SoftReference;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.mkernel.api.Activation;
import org.mkernel.api.UsageException;
import org.mkernel.api.spi.CollectiveProvider;
import org.mkernel.api.spi.Problem;

/**
 * Sums of products of rows and matrices, in double precision, with bias and activation. B of a rank
 * is read once and kept as long as memory allows. Safe for use by several threads.
 */
final class GemmReference implements CollectiveProvider.Reference {
  /** Which products are added up to a row of what a rank has. */
  @FunctionalInterface
  interface Terms {
    void of(int rank, long row, Products products);
  }

  /** Adds products. */
  @FunctionalInterface
  interface Products {
    /**
     * Adds a row of A times B.
     *
     * @param left the rank that has the row
     * @param row the row, from 0 in the shard of that rank
     * @param right the rank that has B
     */
    void add(int left, long row, int right);
  }

  private final Problem problem;
  private final CollectiveProvider.Inputs inputs;
  private final int addends;
  private final Terms terms;
  private final boolean transposed;
  private final boolean biased;
  private final Activation activation;
  private final int n;
  private final int k;
  private final Map<Integer, Right> right = new ConcurrentHashMap<>();

  /**
   * Makes one.
   *
   * @param addends how many products are added up
   * @param terms which
   */
  GemmReference(Problem problem, CollectiveProvider.Inputs inputs, int addends, Terms terms) {
    this.problem = problem;
    this.addends = addends;
    this.inputs = inputs;
    this.terms = terms;
    this.transposed = GemmOperator.transposed(problem);
    this.biased = GemmOperator.biased(problem);
    this.activation = GemmOperator.activation(problem);
    this.n = length(problem, "n");
    this.k = length(problem, "k");
  }

  private static int length(Problem problem, String size) {
    long value = problem.size(size);
    if (value > Integer.MAX_VALUE - 8) {
      throw new UsageException(
          "%s is %d; a reference is possible up to %d"
              .formatted(size, value, Integer.MAX_VALUE - 8));
    }
    return (int) value;
  }

  /** B of one rank, read when it is needed first, or again after memory was short. */
  private final class Right {
    private final int rank;
    private SoftReference<double[][]> kept = new SoftReference<>(null);

    Right(int rank) {
      this.rank = rank;
    }

    synchronized double[][] rows() {
      double[][] rows = kept.get();
      if (rows == null) {
        rows = readB(rank);
        kept = new SoftReference<>(rows);
      }
      return rows;
    }
  }

  /** B of a rank as k rows of n. */
  private double[][] readB(int rank) {
    double[][] rows = new double[k][n];
    if (transposed) {
      double[] column = new double[k];
      for (int j = 0; j < n; j++) {
        inputs.row(rank, "b", j, column);
        for (int i = 0; i < k; i++) {
          rows[i][j] = column[i];
        }
      }
    } else {
      for (int i = 0; i < k; i++) {
        inputs.row(rank, "b", i, rows[i]);
      }
    }
    return rows;
  }

  @Override
  public void row(int rank, String operand, long row, double[] values, double[] magnitudes) {
    Arrays.fill(values, 0, n, 0);
    if (biased) {
      inputs.row(rank, "bias", 0, values);
    }
    for (int j = 0; j < n; j++) {
      magnitudes[j] = Math.abs(values[j]);
    }
    double[] left = new double[k];
    terms.of(
        rank,
        row,
        (leftRank, leftRow, rightRank) -> {
          inputs.row(leftRank, "a", leftRow, left);
          add(left, right.computeIfAbsent(rightRank, Right::new).rows(), values, magnitudes);
        });
    for (int j = 0; activation != Activation.NONE && j < n; j++) {
      values[j] = activation.apply(values[j]);
    }
  }

  @Override
  public double roundOff() {
    // One bias, and one step of an activation.
    double sum = addends * (k + 2.0);
    // The product of a rank, and the partial sum of a node.
    return addends == 1 ? sum * Partials.FP32 : Partials.roundOff(problem, sum, 2);
  }

  private void add(double[] left, double[][] b, double[] values, double[] magnitudes) {
    int i = 0;
    for (; i + 4 <= k; i += 4) {
      addFour(left, i, b, values, magnitudes, n);
    }
    for (; i < k; i++) {
      addOne(left[i], b[i], values, magnitudes, n);
    }
  }

  // Loops of their own, over whole rows: they are compiled to vector instructions. Four rows at
  // once load and store the sums a fourth as often.

  private static void addFour(
      double[] left, int i, double[][] b, double[] values, double[] magnitudes, int count) {
    double x0 = left[i];
    double x1 = left[i + 1];
    double x2 = left[i + 2];
    double x3 = left[i + 3];
    double[] y0 = b[i];
    double[] y1 = b[i + 1];
    double[] y2 = b[i + 2];
    double[] y3 = b[i + 3];
    for (int j = 0; j < count; j++) {
      double p0 = x0 * y0[j];
      double p1 = x1 * y1[j];
      double p2 = x2 * y2[j];
      double p3 = x3 * y3[j];
      values[j] += p0 + p1 + (p2 + p3);
      magnitudes[j] += Math.abs(p0) + Math.abs(p1) + (Math.abs(p2) + Math.abs(p3));
    }
  }

  private static void addOne(
      double x, double[] y, double[] values, double[] magnitudes, int count) {
    for (int j = 0; j < count; j++) {
      double product = x * y[j];
      values[j] += product;
      magnitudes[j] += Math.abs(product);
    }
  }
}
