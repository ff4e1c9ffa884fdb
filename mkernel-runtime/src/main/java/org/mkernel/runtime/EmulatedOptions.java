package org.mkernel.runtime;

import java.util.List;
import java.util.Map;
import org.mkernel.api.UsageException;
import org.mkernel.api.spi.OptionSpec;

/**
 * How the emulated wire behaves.
 *
 * @param bytesPerSecond what a rank sends in a second, 0 for no limit
 * @param latencyNanos from the last byte sent to its arrival
 * @param depth transfers in flight per queue pair
 * @param seed what the adversary draws from, 0 for no adversary
 * @param faults what goes wrong
 */
record EmulatedOptions(
    long bytesPerSecond, long latencyNanos, int depth, long seed, List<EmulatedFault> faults) {
  private static final String PREFIX = EmulatedWireProvider.NAME + ".";
  private static final String BANDWIDTH = PREFIX + "bandwidth";
  private static final String LATENCY = PREFIX + "latency";
  private static final String DEPTH = PREFIX + "depth";
  private static final String ADVERSARIAL = PREFIX + "adversarial";
  private static final String FAULT = PREFIX + "fault";

  static final int DEFAULT_DEPTH = 128;
  static final int MAX_DEPTH = 1 << 16;
  private static final long MAX_BANDWIDTH = 1_000_000_000_000_000L;
  private static final long MAX_LATENCY = 60_000_000_000L;

  static final List<OptionSpec> SPECS =
      List.of(
          new OptionSpec(
              BANDWIDTH, "bytes per second that a rank sends; 0 for no limit", "0", List.of()),
          new OptionSpec(LATENCY, "nanoseconds from one rank to another", "0", List.of()),
          new OptionSpec(
              DEPTH,
              "transfers in flight from a rank to a peer",
              Integer.toString(DEFAULT_DEPTH),
              List.of()),
          new OptionSpec(
              ADVERSARIAL,
              "seed of an adversary that reorders and delays as far as a network may; 0 for none",
              "0",
              List.of()),
          new OptionSpec(
              FAULT, "what goes wrong: " + EmulatedFault.SYNTAX, EmulatedFault.NONE, List.of()));

  static EmulatedOptions parse(Map<String, String> options, int worldSize) {
    for (String name : options.keySet()) {
      if (name.startsWith(PREFIX) && SPECS.stream().noneMatch(s -> s.name().equals(name))) {
        throw new UsageException(
            "option %s is not known; the emulated wire knows %s"
                .formatted(name, SPECS.stream().map(OptionSpec::name).toList()));
      }
    }
    return new EmulatedOptions(
        number(options, BANDWIDTH, 0, 0, MAX_BANDWIDTH),
        number(options, LATENCY, 0, 0, MAX_LATENCY),
        (int) number(options, DEPTH, DEFAULT_DEPTH, 1, MAX_DEPTH),
        number(options, ADVERSARIAL, 0, 0, Long.MAX_VALUE),
        EmulatedFault.parse(FAULT, options.getOrDefault(FAULT, EmulatedFault.NONE), worldSize));
  }

  private static long number(
      Map<String, String> options, String name, long otherwise, long least, long most) {
    String text = options.get(name);
    if (text == null) {
      return otherwise;
    }
    try {
      long value = Long.parseLong(text);
      if (value >= least && value <= most) {
        return value;
      }
    } catch (NumberFormatException e) {
      // Reported below, with the text.
    }
    throw new UsageException(
        "option %s is \"%s\"; a whole number from %d to %d is needed"
            .formatted(name, text, least, most));
  }
}
