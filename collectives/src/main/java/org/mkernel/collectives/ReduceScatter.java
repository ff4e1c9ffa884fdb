package org.mkernel.collectives;

import java.util.Map;
import org.mkernel.api.Tensor;

/** Every rank receives its slice of the rows of a sum over all ranks. Immutable. */
public final class ReduceScatter extends TypedCollective<ReduceScatter> {
  static final String NAME = "reduce-scatter";

  private ReduceScatter(Map<String, Tensor> operands, Map<String, String> options) {
    super(NAME, operands, options);
  }

  /**
   * C = rows of ΣA that are this rank's. Sums are in fp32, in an order that the world alone
   * decides.
   *
   * @param a this rank's addend, M × N
   * @param c receives ⌈M/W⌉ × N rows of the sum; on the last ranks less, or none; it may be their
   *     place in {@code a}
   * @return the operation
   */
  public static ReduceScatter of(Tensor a, Tensor c) {
    return new ReduceScatter(operands(a, c), Map.of());
  }

  @Override
  ReduceScatter with(Map<String, Tensor> operands, Map<String, String> options) {
    return new ReduceScatter(operands, options);
  }
}
