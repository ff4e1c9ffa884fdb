package org.mkernel.collectives;

import java.util.Map;
import org.mkernel.api.Tensor;

/**
 * Every rank receives the sum over all ranks, with the same bits everywhere: {@link ReduceScatter}
 * and {@link AllGather} in one launch, over elements, whatever the shape. Immutable.
 */
public final class AllReduce extends TypedCollective<AllReduce> {
  static final String NAME = "all-reduce";

  private AllReduce(Map<String, Tensor> operands, Map<String, String> options) {
    super(NAME, operands, options);
  }

  /**
   * C = ΣA. Sums are in fp32, in an order that the world alone decides.
   *
   * @param a this rank's addend, M × N
   * @param c receives the sum, M × N; it may be {@code a} itself
   * @return the operation
   */
  public static AllReduce of(Tensor a, Tensor c) {
    return new AllReduce(operands(a, c), Map.of());
  }

  @Override
  AllReduce with(Map<String, Tensor> operands, Map<String, String> options) {
    return new AllReduce(operands, options);
  }
}
