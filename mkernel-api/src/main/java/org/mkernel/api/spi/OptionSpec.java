package org.mkernel.api.spi;

import java.util.List;

/**
 * An option of an operator or a transport, as the command line shows it.
 *
 * @param name its name, in kebab case
 * @param description one line
 * @param defaultValue what holds when it is not given
 * @param allowed the values allowed, or empty when any is
 */
public record OptionSpec(
    String name, String description, String defaultValue, List<String> allowed) {
  /** Copies the list. */
  public OptionSpec {
    allowed = List.copyOf(allowed);
  }
}
