package org.mkernel.api.schedule;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.mkernel.api.UsageException;

/**
 * Which rank is on which node. Ranks of one node reach each other by a mapped transport; between
 * nodes, traffic goes along rails, that is between ranks of equal local index.
 */
public final class Topology {
  private final int[] nodeOf;
  private final int[] localIndex;
  private final int[][] members;

  private Topology(int[] nodeOf) {
    this.nodeOf = nodeOf;
    this.localIndex = new int[nodeOf.length];
    int nodes = Arrays.stream(nodeOf).max().orElse(-1) + 1;
    List<List<Integer>> lists = new ArrayList<>();
    for (int node = 0; node < nodes; node++) {
      lists.add(new ArrayList<>());
    }
    for (int rank = 0; rank < nodeOf.length; rank++) {
      localIndex[rank] = lists.get(nodeOf[rank]).size();
      lists.get(nodeOf[rank]).add(rank);
    }
    this.members =
        lists.stream()
            .map(l -> l.stream().mapToInt(Integer::intValue).toArray())
            .toArray(int[][]::new);
  }

  /**
   * Equal nodes, ranks in blocks: rank r is on node r / ranksPerNode.
   *
   * @param nodes number of nodes, at least 1
   * @param ranksPerNode ranks on each, at least 1
   * @return the topology
   * @throws UsageException when a number is below 1 or the world exceeds 65536 ranks
   */
  public static Topology of(int nodes, int ranksPerNode) {
    if (nodes < 1 || ranksPerNode < 1 || (long) nodes * ranksPerNode > 65536) {
      throw new UsageException(
          "a world of %d nodes x %d ranks; both must be at least 1 and the product at most 65536"
              .formatted(nodes, ranksPerNode));
    }
    int[] nodeOf = new int[nodes * ranksPerNode];
    Arrays.setAll(nodeOf, rank -> rank / ranksPerNode);
    return new Topology(nodeOf);
  }

  /**
   * Any placement.
   *
   * @param nodeOf the node of each rank; nodes are numbered 0, 1, … and none is empty
   * @return the topology
   * @throws UsageException when there is no rank or a node is empty or negative
   */
  public static Topology of(int[] nodeOf) {
    int[] distinct = Arrays.stream(nodeOf).sorted().distinct().toArray();
    if (distinct.length == 0
        || distinct[0] != 0
        || distinct[distinct.length - 1] >= distinct.length) {
      throw new UsageException(
          "nodes of the ranks are %s; they must be 0 … n-1, each used"
              .formatted(Arrays.toString(nodeOf)));
    }
    return new Topology(nodeOf.clone());
  }

  /**
   * The number of ranks.
   *
   * @return at least 1
   */
  public int size() {
    return nodeOf.length;
  }

  /**
   * The number of nodes.
   *
   * @return at least 1
   */
  public int nodes() {
    return members.length;
  }

  /**
   * The node of a rank.
   *
   * @param rank a rank
   * @return its node
   */
  public int node(int rank) {
    return nodeOf[rank];
  }

  /**
   * The index of a rank among the ranks of its node.
   *
   * @param rank a rank
   * @return 0 for the lowest rank of the node
   */
  public int localIndex(int rank) {
    return localIndex[rank];
  }

  /**
   * How many ranks a node has.
   *
   * @param node a node
   * @return at least 1
   */
  public int ranks(int node) {
    return members[node].length;
  }

  /**
   * A rank of a node.
   *
   * @param node the node
   * @param index the local index
   * @return the rank
   */
  public int rank(int node, int index) {
    return members[node][index];
  }

  /**
   * The rank of another node on the same rail; where that node is smaller, rails wrap around.
   *
   * @param rank a rank
   * @param node a node
   * @return the rank of that node which exchanges data with {@code rank}
   */
  public int railPeer(int rank, int node) {
    return members[node][localIndex[rank] % members[node].length];
  }

  /**
   * Whether two ranks are on one node.
   *
   * @param a a rank
   * @param b a rank
   * @return true when they are
   */
  public boolean sameNode(int a, int b) {
    return nodeOf[a] == nodeOf[b];
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Topology t && Arrays.equals(nodeOf, t.nodeOf);
  }

  @Override
  public int hashCode() {
    return Arrays.hashCode(nodeOf);
  }

  @Override
  public String toString() {
    return members.length + " nodes, " + nodeOf.length + " ranks";
  }
}
