package org.mkernel.collectives;

import org.mkernel.api.schedule.ScheduleBuilder;
import org.mkernel.api.schedule.SignalSpec;
import org.mkernel.api.schedule.Topology;

/**
 * The gather that both operators share: every rank's rows, in chunks, to every other rank. Between
 * nodes a chunk travels once, along its rail; the rank that receives it passes it on to the others of
 * its node. Each chunk has one arrival flag, of the same number on every rank.
 */
final class GatherPlan {
  /** Where rows come from and go to. */
  record Rows(int source, int target, long rowBytes) {}

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
    this.chunksPerRank = Math.toIntExact((sharding.block() + chunkRows - 1) / chunkRows);
    this.arrived =
        builder.flags(
            "arrived",
            Math.multiplyExact(chunksPerRank, topology.size()),
            SignalSpec.Scope.SYSTEM);
  }

  int chunks(int source) {
    return Math.toIntExact((sharding.count(source) + chunkRows - 1) / chunkRows);
  }

  /** The first row of a chunk, of all rows. */
  long firstRow(int source, int chunk) {
    return sharding.first(source) + chunk * chunkRows;
  }

  long rowCount(int source, int chunk) {
    return Math.min(chunkRows, sharding.count(source) - chunk * chunkRows);
  }

  /** The flag that says, on each rank but the source, that a chunk is there. */
  int arrived(int source, int chunk) {
    return arrived + source * chunksPerRank + chunk;
  }

  /** Writes the puts of one rank, and the roles that send them. */
  void send(int rank) {
    ScheduleBuilder.RankBuilder b = builder.rank(rank);
    if (topology.size() == 1) {
      return;
    }
    int node = topology.node(rank);
    int sends = b.pool("send");
    for (int chunk = 0; chunk < chunks(rank); chunk++) {
      for (int step = 1; step < topology.nodes(); step++) {
        int peer = topology.railPeer(rank, (node + step) % topology.nodes());
        put(b, rank, chunk, peer, true);
      }
      for (int step = 1; step < topology.ranks(node); step++) {
        put(b, rank, chunk, neighbour(rank, step), true);
      }
    }
    b.role("send", false, sends);
    if (topology.nodes() == 1 || topology.ranks(node) == 1) {
      return;
    }
    int forwards = b.pool("forward");
    for (int chunk = 0; chunk < chunksPerRank; chunk++) {
      for (int step = 1; step < topology.nodes(); step++) {
        int from = (node - step + topology.nodes()) % topology.nodes();
        for (int index = 0; index < topology.ranks(from); index++) {
          int source = topology.rank(from, index);
          if (topology.railPeer(source, node) == rank && chunk < chunks(source)) {
            for (int hop = 1; hop < topology.ranks(node); hop++) {
              put(b, source, chunk, neighbour(rank, hop), false);
            }
          }
        }
      }
    }
    b.role("forward", false, forwards);
  }

  private int neighbour(int rank, int step) {
    int node = topology.node(rank);
    return topology.rank(node, (topology.localIndex(rank) + step) % topology.ranks(node));
  }

  private void put(
      ScheduleBuilder.RankBuilder b, int source, int chunk, int peer, boolean own) {
    long count = rowCount(source, chunk);
    long bytes = rows.rowBytes();
    long offset = firstRow(source, chunk) * bytes;
    long from = own ? offset - sharding.first(source) * bytes : offset;
    b.put(
        b.region(own ? rows.source() : rows.target(), from, count, bytes, bytes),
        b.regionOf(peer, rows.target(), offset, count, bytes, bytes),
        arrived(source, chunk));
    if (!own) {
      b.await(arrived(source, chunk));
    }
    b.awaitEntered(peer, rows.target());
  }
}
