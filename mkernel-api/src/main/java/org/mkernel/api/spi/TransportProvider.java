package org.mkernel.api.spi;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ThreadFactory;
import org.mkernel.api.Availability;
import org.mkernel.api.schedule.Topology;

/** A transport. The cheapest one that is available and reaches far enough is chosen. */
public interface TransportProvider {
  /** How far a transport reaches. */
  enum Reach {
    /** Ranks of one node, by load and store: {@link #open} gives a {@link MappedPort}. */
    NODE,
    /** Any rank: {@link #open} gives a {@link Wire}. */
    NETWORK
  }

  /**
   * Its name.
   *
   * @return lower case, digits and hyphens
   */
  String name();

  /**
   * How far it reaches.
   *
   * @return the reach
   */
  Reach reach();

  /**
   * What choosing it costs, to compare transports of equal reach: lower is preferred. Real networks
   * are below 1000, emulations at 1000 and above.
   *
   * @return a number of at least 0
   */
  int cost();

  /**
   * Whether it only emulates a network.
   *
   * @return true for an emulation; every report says so
   */
  default boolean emulated() {
    return false;
  }

  /**
   * Whether its wires move memory of devices whose addresses the host may not follow.
   *
   * @return false for a wire that only the host's memory goes through
   */
  default boolean reachesDevices() {
    return false;
  }

  /**
   * The options it understands.
   *
   * @return in the order to show; names start with the transport's
   */
  default List<OptionSpec> options() {
    return List.of();
  }

  /**
   * Whether it can be used on this machine.
   *
   * @return the answer, with the root cause when it cannot
   */
  Availability availability();

  /**
   * Opens it for one rank. Collective.
   *
   * @param context who and where
   * @return a mapped port or a wire, by {@link #reach}
   */
  Port open(Context context);

  /**
   * What a port is opened with.
   *
   * @param rank the rank
   * @param topology the world
   * @param exchange how ranks agree
   * @param options settings by name; among them {@code world-key}, 32 bytes in hex that only ranks
   *     of this world know, {@code world-address}, an address of this host that the others reach,
   *     and {@code world-loopback}, {@code true} where nothing may leave this host because there is
   *     no secret
   * @param threads makes the threads that the transport needs
   */
  record Context(
      int rank,
      Topology topology,
      Exchange exchange,
      Map<String, String> options,
      ThreadFactory threads) {}
}
