package org.mkernel.collectives;

import java.util.Arrays;
import org.mkernel.api.spi.CollectiveProvider;
import org.mkernel.api.spi.Problem;

/** The sum of a row over all ranks, in double precision. */
final class SumReference implements CollectiveProvider.Reference {
  /** Which row of the inputs becomes a row of what a rank has. */
  @FunctionalInterface
  interface Source {
    long row(int rank, long row);
  }

  private final Problem problem;
  private final CollectiveProvider.Inputs inputs;
  private final Source source;

  SumReference(Problem problem, CollectiveProvider.Inputs inputs, Source source) {
    this.problem = problem;
    this.inputs = inputs;
    this.source = source;
  }

  static double flops(Problem problem) {
    return (double) (problem.topology().size() - 1) * problem.size("m") * problem.size("n");
  }

  @Override
  public void row(int rank, String operand, long row, double[] values, double[] magnitudes) {
    double[] addend = new double[values.length];
    Arrays.fill(values, 0);
    Arrays.fill(magnitudes, 0);
    for (int source = 0; source < problem.topology().size(); source++) {
      inputs.row(source, "a", this.source.row(rank, row), addend);
      for (int column = 0; column < addend.length; column++) {
        values[column] += addend[column];
        magnitudes[column] += Math.abs(addend[column]);
      }
    }
  }

  @Override
  public double roundOff() {
    // The partial sum of a node.
    return Partials.roundOff(problem, problem.topology().size(), 1);
  }
}
