package org.mkernel.runtime;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.mkernel.api.Availability;
import org.mkernel.api.Failure;
import org.mkernel.api.MismatchException;
import org.mkernel.api.UsageException;
import org.mkernel.api.schedule.Topology;
import org.mkernel.api.spi.DeviceProvider;
import org.mkernel.api.spi.TransportProvider;
import org.mkernel.runtime.join.HostIdentity;
import org.mkernel.runtime.join.Launch;
import org.mkernel.runtime.join.Membership;

/** What the processes of a world settle once all are there: who is where, and what they use. */
final class Agreement {
  private static final String GIVEN = "node ";

  private Agreement() {}

  /**
   * Which rank is on which node: as the launcher numbers them, or as ranks find themselves on the
   * same host, nodes then numbered by their lowest rank.
   */
  static Topology topology(Membership membership, Launch launch) {
    String own = launch.node().isPresent() ? GIVEN + launch.node().getAsInt() : HostIdentity.own();
    List<String> nodes = gather(membership, own);
    boolean given = nodes.getFirst().startsWith(GIVEN);
    Map<String, Integer> numbers = new HashMap<>();
    int[] nodeOf = new int[nodes.size()];
    for (int rank = 0; rank < nodeOf.length; rank++) {
      String node = nodes.get(rank);
      if (node.startsWith(GIVEN) != given) {
        throw new UsageException(
            "rank %d has a node number and rank %d has none"
                .formatted(given ? 0 : rank, given ? rank : 0),
            Failure.remedy("set MKERNEL_NODE for all ranks or for none").withPeer(rank));
      }
      nodeOf[rank] =
          given
              ? Integer.parseInt(node.substring(GIVEN.length()))
              : numbers.computeIfAbsent(node, n -> numbers.size());
    }
    return Topology.of(nodeOf);
  }

  /** Which transports some rank can't use. */
  static Selection.Reachable reachable(Membership membership, Plugins plugins) {
    Map<String, String> own = new TreeMap<>();
    for (TransportProvider provider : plugins.transports()) {
      if (provider.availability() instanceof Availability.Unavailable u) {
        own.put(provider.name(), u.reason() + "\t" + u.remedy());
      } else {
        own.put(provider.name(), "");
      }
    }
    List<Map<String, String>> all = new ArrayList<>();
    for (String lines : gather(membership, Lines.encode(own))) {
      all.add(Lines.decode(lines));
    }
    Map<String, Availability> missing = new HashMap<>();
    for (TransportProvider provider : plugins.transports()) {
      for (int rank = all.size() - 1; rank >= 0; rank--) {
        String there = all.get(rank).getOrDefault(provider.name(), "not found\tadd its module");
        if (!there.isEmpty()) {
          String[] words = there.split("\t", 2);
          missing.put(
              provider.name(),
              new Availability.Unavailable("on rank %d: %s".formatted(rank, words[0]), words[1]));
        }
      }
    }
    return new Selection.Reachable(membership.size(), missing);
  }

  /** Looks whether all ranks have chosen the same. */
  static void check(
      Membership membership,
      DeviceProvider device,
      Optional<Selection.Transport> intra,
      Optional<Selection.Transport> inter) {
    List<String> all =
        gather(
            membership,
            "device %s, %s inside a node, %s between nodes"
                .formatted(device.name(), name(intra), name(inter)));
    for (int rank = 1; rank < all.size(); rank++) {
      if (!all.get(rank).equals(all.getFirst())) {
        throw new MismatchException(
            "rank 0 uses %s; rank %d uses %s".formatted(all.getFirst(), rank, all.get(rank)),
            Failure.remedy("give all ranks the same options device, transport and intra-transport")
                .withPeer(rank));
      }
    }
  }

  private static String name(Optional<Selection.Transport> transport) {
    return transport.map(t -> t.provider().name()).orElse("nothing");
  }

  private static List<String> gather(Membership membership, String own) {
    return membership.allGather(own.getBytes(UTF_8)).stream()
        .map(bytes -> new String(bytes, UTF_8))
        .toList();
  }

  /** A map of words as lines; line ends within words become blanks. */
  private static final class Lines {
    static String encode(Map<String, String> words) {
      StringBuilder text = new StringBuilder();
      words.forEach((name, value) ->
          text.append(name).append('=').append(value.replaceAll("\\R", " ")).append('\n'));
      return text.toString();
    }

    static Map<String, String> decode(String text) {
      Map<String, String> words = new HashMap<>();
      text.lines()
          .forEach(line -> {
            int equals = line.indexOf('=');
            if (equals > 0) {
              words.put(line.substring(0, equals), line.substring(equals + 1));
            }
          });
      return words;
    }
  }
}
