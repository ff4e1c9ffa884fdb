package org.mkernel.collectives;

import org.mkernel.api.UsageException;
import org.mkernel.api.schedule.ScheduleBuilder;
import org.mkernel.api.schedule.SignalSpec;
import org.mkernel.api.schedule.Topology;

/**
 * The gather that operators share: the rows of every rank, in chunks, to every other rank. Between
 * nodes a chunk travels once, along its rail; the rank that receives it passes it on to the others
 * of its node. Each chunk has one arrival flag, of the same number on every rank.
 *
 * <p>All puts of a rank are in one role whose lanes take what is ready: a chunk that has yet to
 * arrive, or a peer that is late to enter, holds up only the pool that waits for it.
 */
final class GatherPlan {
  /**
   * Where rows come from and go to.
   *
   * @param source the buffer of each rank's own rows
   * @param target the buffer of all rows, which peers write
   * @param rowBytes bytes of a row in both, without gaps
   */
  record Rows(int source, int target, long rowBytes) {}

  /** Receives the chunks that a rank ends up with. */
  @FunctionalInterface
  interface ChunkVisitor {
    void visit(int source, int chunk);
  }

  private static final int MAX_FLAGS = 1 << 20;

  private final ScheduleBuilder builder;
  private final Topology topology;
  private final RowSharding sharding;
  private final Rows rows;
  private final long chunkRows;
  private final int chunksPerRank;
  private final int arrived;

  GatherPlan(ScheduleBuilder builder, RowSharding sharding, Rows rows, long chunkRows) {
    this.builder = builder;
    this.topology = builder.topology();
    this.sharding = sharding;
    this.rows = rows;
    this.chunkRows = chunkRows;
    long chunks = Math.ceilDiv(sharding.block(), chunkRows);
    long most = MAX_FLAGS / topology.size();
    if (chunks > most) {
      throw new UsageException(
          "%s of %d cuts the %d rows of a rank into %d chunks; at most %d are possible here"
              .formatted(Tuning.CHUNK_ROWS.name(), chunkRows, sharding.block(), chunks, most));
    }
    this.chunksPerRank = (int) chunks;
    this.arrived =
        builder.flags("arrived", chunksPerRank * topology.size(), SignalSpec.Scope.SYSTEM);
  }

  /** The number of chunks of a source. */
  int chunks(int source) {
    return (int) Math.ceilDiv(sharding.count(source), chunkRows);
  }

  /** The first row of a chunk, of all rows. */
  long firstRow(int source, int chunk) {
    return sharding.first(source) + chunk * chunkRows;
  }

  /** The rows of a chunk, at least 1. */
  long rowCount(int source, int chunk) {
    return Math.min(chunkRows, sharding.count(source) - chunk * chunkRows);
  }

  /** The flag that says, on each rank but the source, that a chunk is there. */
  int arrived(int source, int chunk) {
    return arrived + source * chunksPerRank + chunk;
  }

  /** Writes the puts of one rank, and the role that sends them. */
  void send(int rank) {
    if (topology.size() > 1) {
      new Sender(rank).send();
    }
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

    void send() {
      // In this order one pass over the pools starts the longest path first.
      int wire = tasks.pool("wire");
      for (int chunk = 0; chunk < chunks(rank); chunk++) {
        for (int hop = 1; hop < topology.nodes(); hop++) {
          int to = (node + hop) % topology.nodes();
          put(rank, chunk, topology.railPeer(rank, to));
        }
      }
      int forward = tasks.pool("forward");
      for (int chunk = 0; chunk < chunksPerRank; chunk++) {
        for (int hop = 1; hop < topology.nodes(); hop++) {
          forward(Math.floorMod(node - hop, topology.nodes()), chunk);
        }
      }
      int local = tasks.pool("local");
      for (int chunk = 0; chunk < chunks(rank); chunk++) {
        putToNeighbours(rank, chunk);
      }
      tasks.readyFirstRole("communication", false, wire, forward, local);
    }

    /** Passes on what this rank receives of a chunk from the ranks of a node. */
    private void forward(int from, int chunk) {
      // Rails wrap around where this node is smaller: then more than one source sends to this rank.
      for (int index = 0; index < topology.ranks(from); index++) {
        int source = topology.rank(from, index);
        if (topology.railPeer(source, node) == rank && chunk < chunks(source)) {
          putToNeighbours(source, chunk);
        }
      }
    }

    private void putToNeighbours(int source, int chunk) {
      int ranks = topology.ranks(node);
      for (int step = 1; step < ranks; step++) {
        int index = (topology.localIndex(rank) + step) % ranks;
        put(source, chunk, topology.rank(node, index));
      }
    }

    private void put(int source, int chunk, int peer) {
      boolean own = source == rank;
      long count = rowCount(source, chunk);
      long bytes = rows.rowBytes();
      long to = firstRow(source, chunk) * bytes;
      long from = own ? to - sharding.first(source) * bytes : to;
      tasks.put(
          tasks.region(own ? rows.source() : rows.target(), from, count, bytes, bytes),
          tasks.regionOf(peer, rows.target(), to, count, bytes, bytes),
          arrived(source, chunk));
      if (!own) {
        tasks.await(arrived(source, chunk));
      }
      tasks.awaitEntered(peer, rows.target());
    }
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
    for (int chunk = 0; chunk < chunksPerRank; chunk++) {
      for (int step = 1; step < ranks; step++) {
        visit(topology.rank(node, Math.floorMod(local - step, ranks)), chunk, visitor);
      }
    }
    for (int chunk = 0; chunk < chunksPerRank; chunk++) {
      for (int hop = 1; hop < topology.nodes(); hop++) {
        int from = Math.floorMod(node - hop, topology.nodes());
        for (int step = 0; step < topology.ranks(from); step++) {
          int index = Math.floorMod(local - step, topology.ranks(from));
          visit(topology.rank(from, index), chunk, visitor);
        }
      }
    }
  }

  private void visit(int source, int chunk, ChunkVisitor visitor) {
    if (chunk < chunks(source)) {
      visitor.visit(source, chunk);
    }
  }
}
