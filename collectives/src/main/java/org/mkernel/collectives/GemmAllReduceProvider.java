package org.mkernel.collectives;

/** The operator {@code gemm-all-reduce}. */
public final class GemmAllReduceProvider extends GemmReduceOperator {
  /** For {@link java.util.ServiceLoader}. */
  public GemmAllReduceProvider() {
    super(GemmAllReduce.NAME, "C = sum of A·B over the ranks, on every rank, bit for bit the same");
  }

  @Override
  boolean everywhere() {
    return true;
  }
}
