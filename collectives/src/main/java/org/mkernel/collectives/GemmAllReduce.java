package org.mkernel.collectives;

import java.util.Map;
import org.mkernel.api.Tensor;

/**
 * C = ΣA·B over the ranks, on every rank, with the same bits everywhere: {@link GemmReduceScatter}
 * and {@link AllGather} in one launch, in which rows travel as soon as they are summed.
 *
 * <p>Shapes: {@code a} is this rank's M × K; {@code b} its K × N, or N × K when transposed; {@code
 * bias} is 1 × N, the same on all ranks; {@code c} receives M × N. Bias and activation are applied
 * once, to the sum. All are of one type; sums are in fp32, and between ranks partial sums travel in
 * that type or, with option {@code partials}, in fp32. Immutable.
 */
public final class GemmAllReduce extends GemmCollective<GemmAllReduce> {
  static final String NAME = "gemm-all-reduce";

  private GemmAllReduce(Map<String, Tensor> operands, Map<String, String> options) {
    super(NAME, operands, options);
  }

  /**
   * C = ΣA·B.
   *
   * @param a this rank's A
   * @param b this rank's B
   * @param c receives the sum
   * @return the operation
   */
  public static GemmAllReduce of(Tensor a, Tensor b, Tensor c) {
    return new GemmAllReduce(operands(a, b, c), Map.of());
  }

  @Override
  GemmAllReduce with(Map<String, Tensor> operands, Map<String, String> options) {
    return new GemmAllReduce(operands, options);
  }
}
