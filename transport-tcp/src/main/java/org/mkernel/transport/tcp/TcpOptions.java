package org.mkernel.transport.tcp;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.mkernel.api.Failure;
import org.mkernel.api.UsageException;
import org.mkernel.api.spi.OptionSpec;

/**
 * How the wire is set up.
 *
 * @param streams connections to each peer
 * @param queue pieces that wait for a connection
 * @param address where this rank listens
 * @param key what ranks of the world prove to know
 */
record TcpOptions(int streams, int queue, InetAddress address, byte[] key) {
  private static final String PREFIX = TcpTransport.NAME + ".";
  private static final String STREAMS = PREFIX + "streams";
  private static final String QUEUE = PREFIX + "queue";
  private static final String ADDRESS = PREFIX + "address";

  static final List<OptionSpec> SPECS =
      List.of(
          new OptionSpec(STREAMS, "connections to each peer, 1 to 64", "4", List.of()),
          new OptionSpec(QUEUE, "pieces that may wait for a connection", "1024", List.of()),
          new OptionSpec(
              ADDRESS,
              "where this rank listens; an address that the others reach",
              "as at the rendezvous",
              List.of()));

  static TcpOptions parse(Map<String, String> options) {
    for (String name : options.keySet()) {
      if (name.startsWith(PREFIX) && SPECS.stream().noneMatch(s -> s.name().equals(name))) {
        throw new UsageException(
            "option %s is not known; the wire over sockets knows %s"
                .formatted(name, SPECS.stream().map(OptionSpec::name).toList()));
      }
    }
    String key = options.getOrDefault("world-key", "");
    if (key.isEmpty()) {
      throw new UsageException(
          "the world has no key", Failure.remedy("make worlds with MKernel.join or MKernel.local"));
    }
    return new TcpOptions(
        number(options, STREAMS, 4, 64),
        number(options, QUEUE, 1024, 1 << 20),
        address(options),
        HexFormat.of().parseHex(key));
  }

  private static InetAddress address(Map<String, String> options) {
    String text = options.getOrDefault(ADDRESS, options.getOrDefault("world-address", "127.0.0.1"));
    try {
      InetAddress address = InetAddress.getAllByName(text)[0];
      if (Boolean.parseBoolean(options.getOrDefault("world-loopback", "true"))
          && !address.isLoopbackAddress()) {
        throw new UsageException(
            "option %s is \"%s\", which is no loopback address, and there is no secret"
                .formatted(ADDRESS, text),
            Failure.remedy("set MKERNEL_SECRET or MKERNEL_SECRET_FILE, alike for all ranks"));
      }
      return address;
    } catch (UnknownHostException e) {
      throw new UsageException(
          "option %s is \"%s\"; an address of this host is needed".formatted(ADDRESS, text),
          Failure.remedy("choose one that the other ranks reach"),
          e);
    }
  }

  private static int number(Map<String, String> options, String name, int otherwise, int most) {
    String text = options.getOrDefault(name, Integer.toString(otherwise));
    try {
      int value = Integer.parseInt(text);
      if (value >= 1 && value <= most) {
        return value;
      }
    } catch (NumberFormatException e) {
      // Reported below, with the text.
    }
    throw new UsageException(
        "option %s is \"%s\"; a whole number from 1 to %d is needed".formatted(name, text, most));
  }
}
