package org.mkernel.collectives;

import java.util.Map;
import org.mkernel.api.Tensor;

/** Every rank receives what one has. Immutable. */
public final class Broadcast extends TypedCollective<Broadcast> {
  static final String NAME = "broadcast";

  private Broadcast(Map<String, Tensor> operands, Map<String, String> options) {
    super(NAME, operands, options);
  }

  /**
   * C = A of rank 0, or of the rank that {@link #root} sets.
   *
   * @param a on the root M × N; elsewhere a tensor without rows
   * @param c receives M × N; on the root it may be {@code a} itself
   * @return the operation
   */
  public static Broadcast of(Tensor a, Tensor c) {
    return new Broadcast(operands(a, c), Map.of());
  }

  /**
   * Sets the rank that has A.
   *
   * @param rank the rank, 0 unless set
   * @return a changed copy
   */
  public Broadcast root(int rank) {
    return option("root", Integer.toString(rank));
  }

  @Override
  Broadcast with(Map<String, Tensor> operands, Map<String, String> options) {
    return new Broadcast(operands, options);
  }
}
