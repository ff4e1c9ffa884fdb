package org.mkernel.transport.rdma;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.mkernel.api.UsageException;
import org.mkernel.api.spi.OptionSpec;

/**
 * How the wire is set up.
 *
 * @param devices names of adapters, empty to choose; a rank takes the one at its number modulo
 * @param port of the adapter, 0 for the first active one
 * @param gidIndex in the port's table, -1 to choose
 * @param pkey the partition key, 15 bits
 * @param trafficClass of each packet with a global header
 * @param serviceLevel 0 to 15
 * @param mtu bytes of a packet at most, 0 for what both ends can
 * @param timeout exponent t of the time to an acknowledgement: 4.096 µs · 2^t
 * @param retries after a time-out
 * @param depth work requests in flight per queue pair
 */
record RdmaOptions(
    List<String> devices,
    int port,
    int gidIndex,
    int pkey,
    int trafficClass,
    int serviceLevel,
    int mtu,
    int timeout,
    int retries,
    int depth) {
  private static final String PREFIX = RdmaTransport.NAME + ".";
  static final String DEVICE = PREFIX + "device";
  static final String PORT = PREFIX + "port";
  static final String GID_INDEX = PREFIX + "gid-index";
  static final String PKEY = PREFIX + "pkey";
  static final String TRAFFIC_CLASS = PREFIX + "traffic-class";
  static final String SERVICE_LEVEL = PREFIX + "service-level";
  static final String MTU = PREFIX + "mtu";
  static final String TIMEOUT = PREFIX + "timeout";
  static final String RETRIES = PREFIX + "retries";
  static final String DEPTH = PREFIX + "depth";

  private static final String AUTO = "auto";

  /** The key of the default partition, without the bit that tells full members. */
  static final int DEFAULT_PKEY = 0x7fff;

  private static final List<String> MTUS = List.of(AUTO, "256", "512", "1024", "2048", "4096");

  static final List<OptionSpec> SPECS =
      List.of(
          new OptionSpec(
              DEVICE,
              "adapters, separated by commas: a rank takes the one at its number modulo their count",
              AUTO,
              List.of()),
          new OptionSpec(
              PORT, "port of the adapter; auto is the first active one", AUTO, List.of()),
          new OptionSpec(
              GID_INDEX,
              "which GID on Ethernet; auto is a routable one of RoCE v2",
              AUTO,
              List.of()),
          new OptionSpec(PKEY, "partition key, 0x0001 to 0x7fff", "0x7fff", List.of()),
          new OptionSpec(TRAFFIC_CLASS, "traffic class, 0 to 255", "0", List.of()),
          new OptionSpec(SERVICE_LEVEL, "service level, 0 to 15", "0", List.of()),
          new OptionSpec(MTU, "bytes of a packet at most; auto is what both ends can", AUTO, MTUS),
          new OptionSpec(
              TIMEOUT,
              "exponent t, 1 to 31: the first acknowledgement may take 4.096 us * 2^t",
              "20",
              List.of()),
          new OptionSpec(RETRIES, "retries after a time-out, 0 to 7", "7", List.of()),
          new OptionSpec(
              DEPTH,
              "work requests in flight from a rank to a peer, 4 to 32768",
              "256",
              List.of()));

  static RdmaOptions parse(Map<String, String> options) {
    for (String name : options.keySet()) {
      if (name.startsWith(PREFIX) && SPECS.stream().noneMatch(s -> s.name().equals(name))) {
        throw new UsageException(
            "option %s is not known; the transport knows %s"
                .formatted(name, SPECS.stream().map(OptionSpec::name).toList()));
      }
    }
    return new RdmaOptions(
        devices(options),
        number(options, PORT, 0, 1, 255),
        number(options, GID_INDEX, -1, 0, 65535),
        number(options, PKEY, DEFAULT_PKEY, 1, DEFAULT_PKEY),
        number(options, TRAFFIC_CLASS, 0, 0, 255),
        number(options, SERVICE_LEVEL, 0, 0, 15),
        mtu(options),
        number(options, TIMEOUT, 20, 1, 31),
        number(options, RETRIES, 7, 0, 7),
        number(options, DEPTH, 256, 4, 32768));
  }

  /** The text of an option that is set to something else than its default. */
  private static Optional<String> given(Map<String, String> options, String name) {
    return Optional.ofNullable(options.get(name)).filter(text -> !text.equals(AUTO));
  }

  private static List<String> devices(Map<String, String> options) {
    Optional<String> text = given(options, DEVICE);
    if (text.isEmpty()) {
      return List.of();
    }
    List<String> names = Arrays.stream(text.get().split(",", -1)).map(String::strip).toList();
    if (names.stream().anyMatch(name -> !name.matches("[A-Za-z0-9_.:-]+"))) {
      throw new UsageException(
          "option %s is \"%s\"; names of adapters are needed, separated by commas"
              .formatted(DEVICE, text.get()));
    }
    return names;
  }

  private static int mtu(Map<String, String> options) {
    Optional<String> text = given(options, MTU);
    if (text.isPresent() && !MTUS.contains(text.get())) {
      throw new UsageException(
          "option %s is \"%s\"; allowed are %s".formatted(MTU, text.get(), MTUS));
    }
    return text.map(Integer::parseInt).orElse(0);
  }

  private static int number(
      Map<String, String> options, String name, int otherwise, int least, int most) {
    Optional<String> text = given(options, name);
    if (text.isEmpty()) {
      return otherwise;
    }
    try {
      int value = Integer.decode(text.get());
      if (value >= least && value <= most) {
        return value;
      }
    } catch (NumberFormatException e) {
      // Reported below, with the text.
    }
    throw new UsageException(
        "option %s is \"%s\"; a whole number from %d to %d is needed"
            .formatted(name, text.get(), least, most));
  }
}
