package org.mkernel.api.spi;

import java.util.Map;
import org.mkernel.api.DType;
import org.mkernel.api.UsageException;
import org.mkernel.api.schedule.Topology;

/**
 * One operation in numbers: all that a planner looks at. Equal problems have equal schedules.
 *
 * @param operator the name of a {@link CollectiveProvider}
 * @param topology the ranks
 * @param dtype the type of all operands
 * @param sizes named extents, as {@code m}, {@code n}, {@code k}, in elements, each at least 1
 * @param options the operator's own, and tuning, by the names of {@link CollectiveProvider#options}
 */
public record Problem(
    String operator,
    Topology topology,
    DType dtype,
    Map<String, Long> sizes,
    Map<String, String> options) {

  /** Copies the maps and checks the sizes. */
  public Problem {
    sizes = Map.copyOf(sizes);
    options = Map.copyOf(options);
    sizes.forEach((name, size) -> {
      if (size < 1) {
        throw new UsageException("%s is %d; it must be at least 1".formatted(name, size));
      }
    });
  }

  /**
   * A size.
   *
   * @param name its name
   * @return elements
   * @throws UsageException when it was not given
   */
  public long size(String name) {
    Long size = sizes.get(name);
    if (size == null) {
      throw new UsageException(
          "%s needs the size %s; given are %s".formatted(operator, name, sizes.keySet()));
    }
    return size;
  }

  /**
   * An option.
   *
   * @param name its name
   * @param otherwise the value when it was not given
   * @return its value
   */
  public String option(String name, String otherwise) {
    return options.getOrDefault(name, otherwise);
  }

  /**
   * An option that is a whole number.
   *
   * @param name its name
   * @param otherwise the value when it was not given
   * @return its value
   * @throws UsageException when it is no whole number of at least 1
   */
  public long option(String name, long otherwise) {
    String text = options.get(name);
    if (text == null) {
      return otherwise;
    }
    try {
      long value = Long.parseLong(text);
      if (value >= 1) {
        return value;
      }
    } catch (NumberFormatException e) {
      // Reported below, with the text.
    }
    throw new UsageException(
        "option %s is \"%s\"; a whole number of at least 1 is needed".formatted(name, text));
  }
}
