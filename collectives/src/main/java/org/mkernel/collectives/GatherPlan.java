package org.mkernel.collectives;

import java.util.function.IntFunction;
import org.mkernel.api.schedule.ScheduleBuilder;
import org.mkernel.api.schedule.SignalSpec;
import org.mkernel.api.schedule.Topology;

/**
 * The gather that operators share: the rows of every rank, in chunks, to every other rank. Between
 * nodes a chunk travels once, along its rail; the rank that receives it passes it on to the others
 * of its node. Each chunk has one arrival flag, of the same number on every rank.
 *
 * <p>All puts of a rank are for one role whose lanes take what is ready: a chunk that has yet to
 * arrive, or a peer that is late to enter, holds up only the pool that waits for it.
 */
final class GatherPlan {
  /** Receives the chunks that a rank ends up with. */
  @FunctionalInterface
  interface ChunkVisitor {
    void visit(int source, int chunk);
  }

  private final ScheduleBuilder builder;
  private final Topology topology;
  private final RowChunks chunks;
  private final IntFunction<RowBuffer> source;
  private final Ready ready;
  private final RowBuffer target;
  private final int arrived;

  /**
   * Plans nothing yet.
   *
   * @param source where each rank has its own rows
   * @param ready when they are there
   * @param target all rows, which peers write
   */
  GatherPlan(
      ScheduleBuilder builder,
      RowChunks chunks,
      IntFunction<RowBuffer> source,
      Ready ready,
      RowBuffer target) {
    this.builder = builder;
    this.topology = builder.topology();
    this.chunks = chunks;
    this.source = source;
    this.ready = ready;
    this.target = target;
    this.arrived =
        builder.flags("arrived", chunks.perRank() * topology.size(), SignalSpec.Scope.SYSTEM);
  }

  /** The flag that says, on each rank but the source, that a chunk is there. */
  int arrived(int source, int chunk) {
    return arrived + source * chunks.perRank() + chunk;
  }

  /**
   * Writes the puts of one rank.
   *
   * @return their pools, in an order in which one pass starts the longest path first
   */
  int[] send(int rank) {
    return topology.size() > 1 ? new Sender(rank).send() : new int[0];
  }

  /** The puts of one rank. */
  private final class Sender {
    private final int rank;
    private final int node;
    private final ScheduleBuilder.RankBuilder tasks;

    Sender(int rank) {
      this.rank = rank;
      this.node = topology.node(rank);
      this.tasks = builder.rank(rank);
    }

    int[] send() {
      int wire = tasks.pool("wire");
      for (int chunk = 0; chunk < chunks.count(rank); chunk++) {
        for (int hop = 1; hop < topology.nodes(); hop++) {
          int to = (node + hop) % topology.nodes();
          put(rank, chunk, topology.railPeer(rank, to));
        }
      }
      int forward = tasks.pool("forward");
      for (int chunk = 0; chunk < chunks.perRank(); chunk++) {
        for (int hop = 1; hop < topology.nodes(); hop++) {
          forward(Math.floorMod(node - hop, topology.nodes()), chunk);
        }
      }
      int local = tasks.pool("local");
      for (int chunk = 0; chunk < chunks.count(rank); chunk++) {
        putToNeighbours(rank, chunk);
      }
      return new int[] {wire, forward, local};
    }

    /** Passes on what this rank receives of a chunk from the ranks of a node. */
    private void forward(int from, int chunk) {
      // Rails wrap around where this node is smaller: then more than one source sends to this rank.
      for (int index = 0; index < topology.ranks(from); index++) {
        int owner = topology.rank(from, index);
        if (topology.railPeer(owner, node) == rank && chunk < chunks.count(owner)) {
          putToNeighbours(owner, chunk);
        }
      }
    }

    private void putToNeighbours(int owner, int chunk) {
      int ranks = topology.ranks(node);
      for (int step = 1; step < ranks; step++) {
        int index = (topology.localIndex(rank) + step) % ranks;
        put(owner, chunk, topology.rank(node, index));
      }
    }

    private void put(int owner, int chunk, int peer) {
      long row = chunks.first(owner, chunk);
      long count = chunks.rows(owner, chunk);
      tasks.put(
          (owner == rank ? source.apply(rank) : target).region(tasks, rank, row, count),
          target.regionOf(tasks, peer, row, count),
          arrived(owner, chunk));
      if (owner == rank) {
        ready.await(tasks, owner, chunk);
      } else {
        tasks.await(arrived(owner, chunk));
      }
      tasks.awaitEntered(peer, target.buffer());
    }
  }

  /**
   * Writes, into the last pool, tasks that wait for all that a rank receives: a launch is over when
   * all is here, so somebody must wait for what nobody computes with.
   */
  void awaitArrivals(int rank) {
    ScheduleBuilder.RankBuilder tasks = builder.rank(rank);
    visitArrivals(rank, (owner, chunk) -> tasks.notifies().await(arrived(owner, chunk)));
  }

  /**
   * Visits every chunk of the other ranks in the order in which a rank may expect them: those of
   * its own node, then those of the nodes beyond. Each rank starts at another source, the one that
   * sends to it first.
   */
  void visitArrivals(int rank, ChunkVisitor visitor) {
    int node = topology.node(rank);
    int local = topology.localIndex(rank);
    int ranks = topology.ranks(node);
    for (int chunk = 0; chunk < chunks.perRank(); chunk++) {
      for (int step = 1; step < ranks; step++) {
        visit(topology.rank(node, Math.floorMod(local - step, ranks)), chunk, visitor);
      }
    }
    for (int chunk = 0; chunk < chunks.perRank(); chunk++) {
      for (int hop = 1; hop < topology.nodes(); hop++) {
        int from = Math.floorMod(node - hop, topology.nodes());
        for (int step = 0; step < topology.ranks(from); step++) {
          int index = Math.floorMod(local - step, topology.ranks(from));
          visit(topology.rank(from, index), chunk, visitor);
        }
      }
    }
  }

  private void visit(int owner, int chunk, ChunkVisitor visitor) {
    if (chunk < chunks.count(owner)) {
      visitor.visit(owner, chunk);
    }
  }
}
