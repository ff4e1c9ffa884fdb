package org.mkernel.runtime;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.IntUnaryOperator;
import org.mkernel.api.schedule.Topology;

/**
 * Some of the ranks of a world, that make a world of their own.
 *
 * @param whole the world
 * @param group the number of the group
 * @param ranks its ranks there, ascending
 */
record WorldPart(LocalWorld whole, int group, int[] ranks) {

  /** The groups of a world, by number. */
  static List<WorldPart> of(LocalWorld whole, IntUnaryOperator groupOf) {
    Map<Integer, List<Integer>> groups = new TreeMap<>();
    for (int rank = 0; rank < whole.size(); rank++) {
      int group = groupOf.applyAsInt(rank);
      if (group >= 0) {
        groups.computeIfAbsent(group, g -> new ArrayList<>()).add(rank);
      }
    }
    return groups.entrySet().stream()
        .map(group ->
            new WorldPart(
                whole,
                group.getKey(),
                group.getValue().stream().mapToInt(Integer::intValue).toArray()))
        .toList();
  }

  /** Nodes of which the part has no rank are left out. */
  Topology topology() {
    int[] nodes = Arrays.stream(ranks).map(whole.topology()::node).toArray();
    int[] used = Arrays.stream(nodes).sorted().distinct().toArray();
    return Topology.of(Arrays.stream(nodes).map(node -> Arrays.binarySearch(used, node)).toArray());
  }

  /** The rank of the whole world that is a rank of this process here. */
  LocalRank whole(int rank) {
    return whole.localRank(ranks[rank]);
  }
}
