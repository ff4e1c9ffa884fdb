package org.mkernel.collectives;

import java.util.Map;
import org.mkernel.api.Tensor;

/**
 * C = A·B, with A sharded by rows over the ranks: each rank multiplies all of A with its own B.
 * Tiles whose rows are here are computed while others travel.
 *
 * <p>Shapes, for M × K of A in all and W ranks: {@code a} holds ⌈M/W⌉ × K rows of it, the last
 * ranks less or none; {@code b} is K × N, or N × K when transposed; {@code bias} is 1 × N; {@code
 * c} is M × N. All are of one type; sums are in fp32. Immutable.
 */
public final class AllGatherGemm extends GemmCollective<AllGatherGemm> {
  static final String NAME = "all-gather-gemm";

  private AllGatherGemm(Map<String, Tensor> operands, Map<String, String> options) {
    super(NAME, operands, options);
  }

  /**
   * C = A·B.
   *
   * @param a this rank's rows of A
   * @param b this rank's B
   * @param c receives all of C
   * @return the operation
   */
  public static AllGatherGemm of(Tensor a, Tensor b, Tensor c) {
    return new AllGatherGemm(operands(a, b, c), Map.of());
  }

  @Override
  AllGatherGemm with(Map<String, Tensor> operands, Map<String, String> options) {
    return new AllGatherGemm(operands, options);
  }
}
