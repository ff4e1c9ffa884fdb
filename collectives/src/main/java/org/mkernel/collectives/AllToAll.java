package org.mkernel.collectives;

import java.util.Map;
import org.mkernel.api.Tensor;

/** Every rank has a block of rows for each, and receives those that are for it. Immutable. */
public final class AllToAll extends TypedCollective<AllToAll> {
  static final String NAME = "all-to-all";

  private AllToAll(Map<String, Tensor> operands, Map<String, String> options) {
    super(NAME, operands, options);
  }

  /**
   * C = the blocks for this rank, by source.
   *
   * @param a M × N: one block of ⌈M/W⌉ rows for each of W ranks, in their order; for the last ranks
   *     less rows, or none
   * @param c receives W blocks, from each rank as many rows as it has for this one
   * @return the operation
   */
  public static AllToAll of(Tensor a, Tensor c) {
    return new AllToAll(operands(a, c), Map.of());
  }

  @Override
  AllToAll with(Map<String, Tensor> operands, Map<String, String> options) {
    return new AllToAll(operands, options);
  }
}
