package org.mkernel.cli;

import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.DoubleAccumulator;
import org.mkernel.api.DType;
import org.mkernel.api.spi.CollectiveProvider;
import org.mkernel.api.spi.OperandSpec;
import org.mkernel.api.spi.Problem;

/**
 * Compares outputs with the operator's reference. Where sums are exact, every bit counts; else an
 * error may be as large as the reference says, plus the rounding to the output's type.
 */
final class Verifier {
  /** How much an activation of ours can magnify an error. */
  private static final double SLOPE = 1.2;

  private final Problem problem;
  private final CollectiveProvider.Reference reference;
  private final boolean exact;
  private final AtomicLong elements = new AtomicLong();
  private final AtomicLong wrong = new AtomicLong();
  private final DoubleAccumulator maxError = new DoubleAccumulator(Math::max, 0);

  Verifier(Problem problem, CollectiveProvider operator, InputData inputs) {
    this.problem = problem;
    this.reference = operator.reference(problem, inputs);
    String epilogue = problem.option("epilogue", "none");
    this.exact = inputs.isGenerated() && List.of("none", "relu").contains(epilogue);
  }

  long elements() {
    return elements.get();
  }

  long wrong() {
    return wrong.get();
  }

  double maxError() {
    return maxError.get();
  }

  boolean isExact() {
    return exact;
  }

  /** Adds what another process has found. */
  void add(long otherElements, long otherWrong, double otherMaxError) {
    elements.addAndGet(otherElements);
    wrong.addAndGet(otherWrong);
    maxError.accumulate(otherMaxError);
  }

  /** Checks what one rank has of an output. Safe for use by several threads. */
  void check(int rank, OperandSpec operand, HostTensor tensor) {
    OperandSpec.Shard shard = operand.shards().get(rank);
    int columns = Math.toIntExact(shard.columns());
    double[] values = new double[columns];
    double[] magnitudes = new double[columns];
    DType dtype = problem.dtype();
    long bad = 0;
    for (long row = 0; row < shard.rows(); row++) {
      reference.row(rank, operand.name(), row, values, magnitudes);
      for (int column = 0; column < columns; column++) {
        double seen = tensor.get(row, column);
        double error = Math.abs(seen - values[column]);
        double bound =
            exact
                ? Math.abs(dtype.decode(dtype.encode((float) values[column])) - values[column])
                : tolerance(dtype, values[column], magnitudes[column]);
        // Of NaN every comparison is false: it never passes.
        if (!(error <= bound)) {
          bad++;
        }
        maxError.accumulate(Double.isNaN(error) ? Double.POSITIVE_INFINITY : error);
      }
    }
    elements.addAndGet(shard.rows() * columns);
    wrong.addAndGet(bad);
  }

  private double tolerance(DType dtype, double value, double magnitude) {
    double sum = Math.min(1, reference.roundOff()) * magnitude * SLOPE;
    double rounding = (Math.abs(value) + sum) * Math.scalb(1.0, -dtype.significandBits());
    return sum + rounding + (dtype == DType.F16 ? 0x1p-25 : Float.MIN_NORMAL);
  }
}
