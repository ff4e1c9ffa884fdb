package org.mkernel.collectives;

import java.util.Map;
import org.mkernel.api.Tensor;

/**
 * C = ΣA·B over the ranks, of which each keeps its slice of the rows. Slices that other nodes wait
 * for are computed first; each node sends one partial sum of them.
 *
 * <p>Shapes over W ranks: {@code a} is this rank's M × K; {@code b} its K × N, or N × K when
 * transposed; {@code bias} is 1 × N, the same on all ranks; {@code c} receives ⌈M/W⌉ × N rows of
 * the sum, on the last ranks less or none. Bias and activation are applied once, to the sum. All
 * are of one type; sums are in fp32, and between ranks partial sums travel in that type or, with
 * option {@code partials}, in fp32. Immutable.
 */
public final class GemmReduceScatter extends GemmCollective<GemmReduceScatter> {
  static final String NAME = "gemm-reduce-scatter";

  private GemmReduceScatter(Map<String, Tensor> operands, Map<String, String> options) {
    super(NAME, operands, options);
  }

  /**
   * C = rows of ΣA·B.
   *
   * @param a this rank's A
   * @param b this rank's B
   * @param c receives this rank's rows
   * @return the operation
   */
  public static GemmReduceScatter of(Tensor a, Tensor b, Tensor c) {
    return new GemmReduceScatter(operands(a, b, c), Map.of());
  }

  @Override
  GemmReduceScatter with(Map<String, Tensor> operands, Map<String, String> options) {
    return new GemmReduceScatter(operands, options);
  }
}
