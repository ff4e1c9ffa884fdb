package org.mkernel.api;

import java.util.Map;

/** An operation as a caller writes it down, before it is prepared: an operator and its operands. */
public interface Collective {
  /**
   * The operator.
   *
   * @return the name of its provider
   */
  String operator();

  /**
   * This rank's operands.
   *
   * @return by name, as {@code a}
   */
  Map<String, Tensor> operands();

  /**
   * Options of the operator and tuning.
   *
   * @return by name
   */
  Map<String, String> options();

  /**
   * An operation of any operator, also one that has no class of its own.
   *
   * @param operator the name of its provider
   * @param operands this rank's operands by name
   * @param options options by name
   * @return the operation
   */
  static Collective of(String operator, Map<String, Tensor> operands, Map<String, String> options) {
    return new GenericCollective(operator, Map.copyOf(operands), Map.copyOf(options));
  }
}
