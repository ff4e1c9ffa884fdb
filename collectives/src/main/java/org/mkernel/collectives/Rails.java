package org.mkernel.collectives;

import org.mkernel.api.schedule.Topology;

/**
 * Which ranks of the world a rank stands for on its node: those whose rail it is on. Where nodes
 * differ in size rails wrap around, and there may be several of one node.
 */
final class Rails {
  private final Topology topology;
  private final int perNode;
  private final int localRanks;

  Rails(Topology topology) {
    this.topology = topology;
    int most = 0;
    int least = Integer.MAX_VALUE;
    for (int node = 0; node < topology.nodes(); node++) {
      most = Math.max(most, topology.ranks(node));
      least = Math.min(least, topology.ranks(node));
    }
    this.localRanks = most;
    this.perNode = Math.ceilDiv(most, least);
  }

  /** The ranks of the largest node. */
  int localRanks() {
    return localRanks;
  }

  /** How many numbers {@link #number} gives to ranks of other nodes. They come first. */
  int remote() {
    return (topology.nodes() - 1) * perNode;
  }

  /** How many numbers {@link #number} gives. */
  int all() {
    return remote() + 1;
  }

  /** The rank of a node that stands for a rank: itself on its own node. */
  int standIn(int rank, int node) {
    return topology.railPeer(rank, node);
  }

  /** The number of a rank among all that its stand-in on a node stands for. */
  int number(int rank, int node) {
    return topology.node(rank) == node
        ? remote()
        : other(topology.node(rank), node) * perNode
            + topology.localIndex(rank) / topology.ranks(node);
  }

  /** The number of a node among those that are not {@code own}. */
  static int other(int node, int own) {
    return node < own ? node : node - 1;
  }
}
