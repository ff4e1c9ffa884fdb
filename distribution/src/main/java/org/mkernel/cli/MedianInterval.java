package org.mkernel.cli;

import java.util.Arrays;

/**
 * A median with a confidence interval that assumes nothing of the distribution: two order
 * statistics, chosen by the binomial distribution so that the true median lies between them with
 * the probability that is told.
 *
 * @param median the median of the samples
 * @param low the lower end
 * @param high the upper end
 * @param confidence the probability, at least 0.95 where there are 6 samples or more
 */
record MedianInterval(double median, double low, double high, double confidence) {
  private static final double WANTED = 0.95;

  /** The interval of samples, of which there is at least one. */
  static MedianInterval of(double[] samples) {
    double[] sorted = samples.clone();
    Arrays.sort(sorted);
    int n = sorted.length;
    double median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
    // The median is below the k-th smallest, counted from 0, with the probability of at most k
    // heads.
    int k = 0;
    double below = Math.scalb(1.0, -n);
    double heads = below;
    while (k + 1 < (n + 1) / 2) {
      double next = heads * (n - k) / (k + 1);
      if (2 * (below + next) > 1 - WANTED) {
        break;
      }
      heads = next;
      below += next;
      k++;
    }
    return new MedianInterval(median, sorted[k], sorted[n - 1 - k], 1 - 2 * below);
  }
}
