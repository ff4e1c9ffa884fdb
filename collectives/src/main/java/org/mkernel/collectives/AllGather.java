package org.mkernel.collectives;

import java.util.Map;
import org.mkernel.api.Tensor;

/** Every rank receives the rows of all. Immutable. */
public final class AllGather extends TypedCollective<AllGather> {
  static final String NAME = "all-gather";

  private AllGather(Map<String, Tensor> operands, Map<String, String> options) {
    super(NAME, operands, options);
  }

  /**
   * C = all rows of A.
   *
   * @param a this rank's ⌈M/W⌉ × K rows; the last ranks have less, or none
   * @param c receives M × K; {@code a} may be its place in it
   * @return the operation
   */
  public static AllGather of(Tensor a, Tensor c) {
    return new AllGather(operands(a, c), Map.of());
  }

  @Override
  AllGather with(Map<String, Tensor> operands, Map<String, String> options) {
    return new AllGather(operands, options);
  }
}
