package org.mkernel.api.schedule;

import java.util.Map;
import java.util.TreeMap;

/**
 * What a compute task calls: a kind that some kernel set offers, and what is fixed for all tasks
 * that share it.
 *
 * @param kind a name with its owner's prefix, as {@code mkernel.gemm}
 * @param attributes constants, sorted by name
 */
public record Kernel(String kind, Map<String, String> attributes) {

  /** The product of streams 0 (rows × k) and 1 (k × columns), summed over their parts. */
  public static final String GEMM = "mkernel.gemm";

  /** Attribute of {@link #GEMM}: stream 1 holds columns × k. Values {@code true}, {@code false}. */
  public static final String TRANSPOSE_B = "transposeB";

  /**
   * Adds the parts of stream 0 in fp32, in the order given, as a {@link TaskKind#REDUCE} does, and
   * finishes the sum as {@link #GEMM} does. Parts may differ in type.
   */
  public static final String REDUCE = "mkernel.reduce";

  /**
   * Attribute of {@link #GEMM} and {@link #REDUCE}: one more stream, the last, is one row that is
   * added to each row. Values {@code true}, {@code false}.
   */
  public static final String BIAS = "bias";

  /**
   * Attribute of {@link #GEMM} and {@link #REDUCE}: the label of an {@link
   * org.mkernel.api.Activation}, which is applied in fp32, before the one rounding.
   */
  public static final String ACTIVATION = "activation";

  /** Copies stream 0 to the output, which has the same shape. */
  public static final String COPY = "mkernel.copy";

  /** Copies the attributes. */
  public Kernel {
    attributes = Map.copyOf(attributes);
  }

  /**
   * An attribute.
   *
   * @param name its name
   * @param otherwise the value when it is absent
   * @return its value
   */
  public String attribute(String name, String otherwise) {
    return attributes.getOrDefault(name, otherwise);
  }

  @Override
  public String toString() {
    return kind + new TreeMap<>(attributes);
  }
}
