package org.mkernel.collectives;

import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import org.mkernel.api.Activation;
import org.mkernel.api.Collective;
import org.mkernel.api.Tensor;

/**
 * C = A·B, with A sharded by rows over the ranks: each rank multiplies all of A with its own B.
 * Tiles whose rows are here are computed while others travel.
 *
 * <p>Shapes, for M × K of A in all and W ranks: {@code a} holds ⌈M/W⌉ × K rows of it, the last
 * ranks less or none; {@code b} is K × N, or N × K when transposed; {@code bias} is 1 × N; {@code
 * c} is M × N. All are of one type; sums are in fp32. Immutable.
 */
public final class AllGatherGemm implements Collective {
  static final String NAME = "all-gather-gemm";

  private final Map<String, Tensor> operands;
  private final Map<String, String> options;

  private AllGatherGemm(Map<String, Tensor> operands, Map<String, String> options) {
    this.operands = Map.copyOf(operands);
    this.options = Map.copyOf(options);
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
    return new AllGatherGemm(
        Map.of(
            "a", Objects.requireNonNull(a, "a"),
            "b", Objects.requireNonNull(b, "b"),
            "c", Objects.requireNonNull(c, "c")),
        Map.of());
  }

  /**
   * Adds a row to every row of the product, before the activation.
   *
   * @param row 1 × N
   * @return a changed copy
   */
  public AllGatherGemm bias(Tensor row) {
    Map<String, Tensor> changed = new HashMap<>(operands);
    changed.put("bias", Objects.requireNonNull(row, "row"));
    return new AllGatherGemm(changed, options).option("bias", "true");
  }

  /**
   * Applies a function to every element, in fp32, before it is rounded.
   *
   * @param activation the function
   * @return a changed copy
   */
  public AllGatherGemm epilogue(Activation activation) {
    return option("epilogue", activation.label());
  }

  /**
   * Takes B as N × K.
   *
   * @return a changed copy
   */
  public AllGatherGemm transposeB() {
    return option("transpose-b", "true");
  }

  /**
   * Sets an option, as {@code chunk-rows}, {@code tile-rows} or {@code tile-columns}. Every rank
   * must set the same.
   *
   * @param name its name
   * @param value its value
   * @return a changed copy
   */
  public AllGatherGemm option(String name, String value) {
    Map<String, String> changed = new HashMap<>(options);
    changed.put(Objects.requireNonNull(name, "name"), Objects.requireNonNull(value, "value"));
    return new AllGatherGemm(operands, changed);
  }

  @Override
  public String operator() {
    return NAME;
  }

  @Override
  public Map<String, Tensor> operands() {
    return operands;
  }

  @Override
  public Map<String, String> options() {
    return options;
  }
}
