package org.mkernel.collectives;

import java.util.Arrays;
import java.util.stream.IntStream;
import org.mkernel.api.schedule.Topology;
import org.mkernel.api.spi.Problem;

/** Rows dealt out in equal blocks, the last of which may have less rows, or none. */
final class RowSharding {
  /** Blocks of elements start at multiples of this many bytes: on lines of any cache. */
  private static final long LINE = 128;

  private final long rows;
  private final long block;

  /** By rank: the number of its block. */
  private final int[] place;

  private RowSharding(long rows, long block, int[] place) {
    this.rows = rows;
    this.block = block;
    this.place = place;
  }

  /** Blocks of ⌈m / world⌉, by rank. */
  static RowSharding of(long rows, Topology topology) {
    return new RowSharding(rows, Math.ceilDiv(rows, topology.size()), identity(topology));
  }

  /** The elements of an m × n tensor, each a row by itself, by rank. */
  static RowSharding ofElements(Problem problem) {
    Topology topology = problem.topology();
    return ofElements(problem, topology.size(), identity(topology));
  }

  /** The elements of an m × n tensor, dealt out on the node of a rank, whose block is the first. */
  static RowSharding ofElementsOnNode(Problem problem, int rank) {
    Topology topology = problem.topology();
    int node = topology.node(rank);
    int ranks = topology.ranks(node);
    int[] place = new int[topology.size()];
    Arrays.fill(place, ranks);
    for (int step = 0; step < ranks; step++) {
      place[topology.rank(node, (topology.localIndex(rank) + step) % ranks)] = step;
    }
    return ofElements(problem, ranks, place);
  }

  private static RowSharding ofElements(Problem problem, int blocks, int[] place) {
    long elements = problem.size("m") * problem.size("n");
    long line = LINE / problem.dtype().bytes();
    long lines = Math.ceilDiv(Math.ceilDiv(elements, blocks), line);
    return new RowSharding(elements, lines * line, place);
  }

  private static int[] identity(Topology topology) {
    return IntStream.range(0, topology.size()).toArray();
  }

  int ranks() {
    return place.length;
  }

  /** Rows of a full block. */
  long block() {
    return block;
  }

  long first(int rank) {
    return Math.min(rows, place[rank] * block);
  }

  long count(int rank) {
    return Math.min(rows, (place[rank] + 1) * block) - first(rank);
  }

  /** The rank that holds a row, where blocks are dealt out by rank. */
  int owner(long row) {
    return (int) (row / block);
  }
}
