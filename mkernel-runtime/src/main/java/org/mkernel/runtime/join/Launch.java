package org.mkernel.runtime.join;

import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import org.mkernel.api.Config;
import org.mkernel.api.UsageException;

/**
 * What a launcher said in the environment of this process.
 *
 * @param launcher its name; {@value #NONE} without one
 * @param rank this process's rank
 * @param size ranks of the world
 * @param node the number of this rank's node, when the launcher says it
 * @param rendezvous where rank 0 listens; empty in a world of one rank
 * @param origins where each number came from
 */
public record Launch(
    String launcher,
    int rank,
    int size,
    OptionalInt node,
    Optional<Endpoint> rendezvous,
    List<Origin> origins) {

  /** The launcher of a process that none started. */
  public static final String NONE = "none";

  /** Copies the list. */
  public Launch {
    origins = List.copyOf(origins);
  }

  /**
   * Where a value came from.
   *
   * @param what the value's name
   * @param value the value
   * @param source the variable, or how it was derived
   */
  public record Origin(String what, String value, String source) {
    @Override
    public String toString() {
      return "%s %s (%s)".formatted(what, value, source);
    }
  }

  /**
   * Reads an environment.
   *
   * @param environment variables
   * @return what they say
   * @throws UsageException when they contradict each other, or some are missing
   */
  public static Launch detect(Map<String, String> environment) {
    return new LaunchDetector(environment).detect();
  }

  /**
   * Reads the environment of this process; of the variables that start with {@code MKERNEL_}, what
   * the settings hold counts instead.
   *
   * @param config settings
   * @return what they say
   * @throws UsageException when they contradict each other, or some are missing
   */
  public static Launch of(Config config) {
    return detect(environment(config));
  }

  /**
   * The environment of this process, with what the settings hold in place of the variables that
   * start with {@code MKERNEL_}.
   *
   * @param config settings
   * @return variables
   */
  public static Map<String, String> environment(Config config) {
    Map<String, String> environment = new HashMap<>(System.getenv());
    environment.keySet().removeIf(name -> name.startsWith("MKERNEL_"));
    config
        .options()
        .forEach((name, value) ->
            environment.put(
                "MKERNEL_" + name.toUpperCase(Locale.ROOT).replace('-', '_').replace(".", "__"),
                value));
    return environment;
  }

  /**
   * Whether a launcher was found.
   *
   * @return false for {@link #NONE}
   */
  public boolean isLaunched() {
    return !launcher.equals(NONE);
  }

  /**
   * Where everything came from, in one line.
   *
   * @return words
   */
  public String describe() {
    return String.join(", ", origins.stream().map(Origin::toString).toList());
  }
}
