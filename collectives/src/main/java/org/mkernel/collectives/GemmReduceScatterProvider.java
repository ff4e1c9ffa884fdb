package org.mkernel.collectives;

/** The operator {@code gemm-reduce-scatter}. */
public final class GemmReduceScatterProvider extends GemmReduceOperator {
  /** For {@link java.util.ServiceLoader}. */
  public GemmReduceScatterProvider() {
    super(GemmReduceScatter.NAME, "C = sum of A·B over the ranks, each with its slice of the rows");
  }

  @Override
  boolean everywhere() {
    return false;
  }
}
