package org.mkernel.collectives;

import java.util.List;
import org.mkernel.api.DType;
import org.mkernel.api.spi.OptionSpec;
import org.mkernel.api.spi.Problem;

/** Sums of some ranks on their way to others: the type in which they travel, and what it costs. */
final class Partials {
  static final OptionSpec OPTION =
      new OptionSpec(
          "partials",
          "the type in which partial sums travel",
          "that of the operands",
          List.of("operands", "f32"));

  /** Unit round-off of fp32. */
  static final double FP32 = 0x1p-24;

  private Partials() {}

  static DType dtype(Problem problem) {
    return problem.option(OPTION.name(), "operands").equals("f32") ? DType.F32 : problem.dtype();
  }

  /** From each node one partial sum of each row goes to the node of its owner. */
  static long betweenNodes(Problem problem) {
    long elements = Math.multiplyExact(problem.size("m"), problem.size("n"));
    return Math.multiplyExact(
        Math.multiplyExact(elements, dtype(problem).bytes()), problem.topology().nodes() - 1);
  }

  /**
   * What rounding may do to a sum, as a multiple of the magnitudes that are added.
   *
   * @param terms how many are added in fp32
   * @param roundings how often what was added so far is rounded to the type of partial sums
   */
  static double roundOff(Problem problem, double terms, int roundings) {
    double once = Math.scalb(1.0, -dtype(problem).significandBits());
    return Math.min(1, terms * FP32) + roundings * once;
  }
}
