package org.mkernel.testkit;

import java.util.List;
import org.mkernel.api.DType;
import org.mkernel.api.spi.CollectiveProvider;
import org.mkernel.api.spi.OperandSpec;
import org.mkernel.api.spi.Problem;

/**
 * Elements of inputs, each by its place in the whole operand and by the round.
 *
 * <p>Exact ones are integers in −2 … 2, and where products of two of them are added up, the first
 * operand has so many zeros that no partial sum, of whatever terms and in whatever order, has more
 * bits than the type: neither fp32 sums nor partial sums in the type round. Random ones are uniform
 * in −1 … 1, and round everywhere.
 */
final class InputValues {
  private static final double LARGEST_PRODUCT = 4;

  private final DType dtype;
  private final List<OperandSpec> operands;
  private final boolean exact;

  /** One in so many elements of a row of the first operand is not zero. */
  private final long stride;

  InputValues(CollectiveProvider provider, Problem problem, boolean exact) {
    this.dtype = problem.dtype();
    this.operands = provider.operands(problem);
    this.exact = exact;
    double outputs =
        operands.stream()
            .filter(OperandSpec::output)
            .mapToDouble(o -> (double) o.rows() * o.columns())
            .sum();
    double products = provider.flops(problem) / 2 / outputs;
    double most = Math.scalb(1.0, dtype.significandBits()) / LARGEST_PRODUCT;
    this.stride = (long) Math.max(1, Math.ceil(products / most));
  }

  /** What a rank has at a row of its shard, as the operator sees it. */
  void row(long round, int rank, int operand, long row, double[] out) {
    OperandSpec.Shard shard = operands.get(operand).shards().get(rank);
    for (int column = 0; column < shard.columns(); column++) {
      out[column] = value(round, operand, shard.row() + row, shard.column() + column);
    }
  }

  private float value(long round, int operand, long row, long column) {
    long z = round * 0x9e3779b97f4a7c15L + operand * 0xd1b54a32d192ed03L;
    z += row * 0x8cb92ba72f3d8dd7L + column * 0xabc98388fb8fac03L;
    z = (z ^ (z >>> 30)) * 0xbf58476d1ce4e5b9L;
    z = (z ^ (z >>> 27)) * 0x94d049bb133111ebL;
    z ^= z >>> 31;
    if (!exact) {
      return dtype.decode(dtype.encode((z >> 40) * 0x1p-23f));
    }
    boolean zero = operand == 0 && Math.floorMod(column + row + round, stride) != 0;
    return zero ? 0 : Long.remainderUnsigned(z, 5) - 2;
  }
}
