package org.mkernel.collectives;

import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import org.mkernel.api.Collective;
import org.mkernel.api.Tensor;

/**
 * What the typed operations share. Immutable.
 *
 * @param <C> the operation itself
 */
abstract class TypedCollective<C extends TypedCollective<C>> implements Collective {
  private final String operator;
  private final Map<String, Tensor> operands;
  private final Map<String, String> options;

  TypedCollective(String operator, Map<String, Tensor> operands, Map<String, String> options) {
    this.operator = operator;
    this.operands = Map.copyOf(operands);
    this.options = Map.copyOf(options);
  }

  /** Two operands by the names that all operations give them. */
  static Map<String, Tensor> operands(Tensor a, Tensor c) {
    return Map.of("a", Objects.requireNonNull(a, "a"), "c", Objects.requireNonNull(c, "c"));
  }

  abstract C with(Map<String, Tensor> changedOperands, Map<String, String> changedOptions);

  final C operand(String name, Tensor tensor) {
    Map<String, Tensor> changed = new HashMap<>(operands);
    changed.put(name, tensor);
    return with(changed, options);
  }

  /**
   * Sets an option, as {@code chunk-rows}. Every rank must set the same.
   *
   * @param name its name
   * @param value its value
   * @return a changed copy
   */
  public final C option(String name, String value) {
    Map<String, String> changed = new HashMap<>(options);
    changed.put(Objects.requireNonNull(name, "name"), Objects.requireNonNull(value, "value"));
    return with(operands, changed);
  }

  @Override
  public final String operator() {
    return operator;
  }

  @Override
  public final Map<String, Tensor> operands() {
    return operands;
  }

  @Override
  public final Map<String, String> options() {
    return options;
  }
}
