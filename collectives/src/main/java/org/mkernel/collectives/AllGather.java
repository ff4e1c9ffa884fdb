package org.mkernel.collectives;

import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import org.mkernel.api.Collective;
import org.mkernel.api.Tensor;

/** Every rank receives the rows of all. Immutable. */
public final class AllGather implements Collective {
  static final String NAME = "all-gather";

  private final Map<String, Tensor> operands;
  private final Map<String, String> options;

  private AllGather(Map<String, Tensor> operands, Map<String, String> options) {
    this.operands = Map.copyOf(operands);
    this.options = Map.copyOf(options);
  }

  /**
   * C = all rows of A.
   *
   * @param a this rank's ⌈M/W⌉ × K rows; the last ranks have less, or none
   * @param c receives M × K
   * @return the operation
   */
  public static AllGather of(Tensor a, Tensor c) {
    return new AllGather(
        Map.of("a", Objects.requireNonNull(a, "a"), "c", Objects.requireNonNull(c, "c")), Map.of());
  }

  /**
   * Sets an option, as {@code chunk-rows}. Every rank must set the same.
   *
   * @param name its name
   * @param value its value
   * @return a changed copy
   */
  public AllGather option(String name, String value) {
    Map<String, String> changed = new HashMap<>(options);
    changed.put(Objects.requireNonNull(name, "name"), Objects.requireNonNull(value, "value"));
    return new AllGather(operands, changed);
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
