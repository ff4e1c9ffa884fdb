package org.mkernel.collectives;

import java.util.Map;
import java.util.Objects;
import org.mkernel.api.Activation;
import org.mkernel.api.Tensor;

/**
 * What the typed operations with a product share. Immutable.
 *
 * @param <C> the operation itself
 */
abstract class GemmCollective<C extends GemmCollective<C>> extends TypedCollective<C> {
  GemmCollective(String operator, Map<String, Tensor> operands, Map<String, String> options) {
    super(operator, operands, options);
  }

  /** Three operands by the names that all operations give them. */
  static Map<String, Tensor> operands(Tensor a, Tensor b, Tensor c) {
    return Map.of(
        "a", Objects.requireNonNull(a, "a"),
        "b", Objects.requireNonNull(b, "b"),
        "c", Objects.requireNonNull(c, "c"));
  }

  /**
   * Adds a row to every row of the result, before the activation.
   *
   * @param row 1 × N
   * @return a changed copy
   */
  public final C bias(Tensor row) {
    return operand("bias", Objects.requireNonNull(row, "row")).option("bias", "true");
  }

  /**
   * Applies a function to every element of the result, in fp32, before it is rounded.
   *
   * @param activation the function
   * @return a changed copy
   */
  public final C epilogue(Activation activation) {
    return option("epilogue", activation.label());
  }

  /**
   * Takes B as N × K.
   *
   * @return a changed copy
   */
  public final C transposeB() {
    return option("transpose-b", "true");
  }
}
