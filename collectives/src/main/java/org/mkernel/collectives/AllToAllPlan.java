package org.mkernel.collectives;

import java.util.List;
import java.util.Map;
import org.mkernel.api.UsageException;
import org.mkernel.api.schedule.Kernel;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.schedule.ScheduleBuilder;
import org.mkernel.api.schedule.SignalSpec;
import org.mkernel.api.schedule.Topology;
import org.mkernel.api.spi.OperandSpec;
import org.mkernel.api.spi.Problem;

/**
 * Plans {@code all-to-all}. A block for a rank of another node goes along the rail of its source;
 * who receives it there passes it on, unless it is its own.
 */
final class AllToAllPlan {
  /** Slots of what is passed on: the next launch may send while this one still does. */
  private static final int DEPTH = 2;

  private static final int NONE = -1;

  private final Topology topology;
  private final Rails rails;
  private final ScheduleBuilder builder;
  private final RowSharding blocks;
  private final RowChunks chunks;
  private final RowBuffer a;
  private final int c;
  private final int relayed;
  private final int copy;
  private final int arrived;
  private final int relayedFlag;

  AllToAllPlan(Problem problem, List<OperandSpec> operands) {
    topology = problem.topology();
    rails = new Rails(topology);
    builder = new ScheduleBuilder(problem.operator(), topology);
    blocks = RowSharding.of(problem.size("m"), topology);
    chunks = new RowChunks(blocks, Tuning.chunkRows(problem, blocks.block()), Tuning.CHUNK_ROWS);
    long rowBytes = problem.size("n") * problem.dtype().bytes();
    a = RowBuffer.whole(Operands.declare(operands.getFirst(), problem, builder), rowBytes, blocks);
    c = Operands.declare(operands.getLast(), problem, builder);
    copy = builder.kernel(new Kernel(Kernel.COPY, Map.of()));
    long places = rails.localRanks() > 1 ? (long) rails.remote() * rails.localRanks() : 0;
    if (places * chunks.perRank() > Integer.MAX_VALUE / 4) {
      throw new UsageException(
          "%d blocks of %d chunks would be passed on by each rank; raise %s, or use nodes of one"
                  .formatted(places, chunks.perRank(), Tuning.CHUNK_ROWS.name())
              + " size");
    }
    arrived = builder.flags("arrived", chunks.perRank() * topology.size(), SignalSpec.Scope.SYSTEM);
    boolean relays = places > 0;
    relayed =
        relays
            ? builder.workspace(
                "relayed", problem.dtype(), places * blocks.block() * rowBytes, DEPTH)
            : NONE;
    relayedFlag =
        relays
            ? builder.flags("relayed", (int) places * chunks.perRank(), SignalSpec.Scope.SYSTEM)
            : NONE;
  }

  Schedule plan() {
    for (int rank = 0; rank < topology.size(); rank++) {
      new OneRank(rank).plan();
    }
    return builder.build();
  }

  /** The tasks of one rank. */
  private final class OneRank {
    private final int rank;
    private final int node;
    private final ScheduleBuilder.RankBuilder tasks;

    OneRank(int rank) {
      this.rank = rank;
      this.node = topology.node(rank);
      this.tasks = builder.rank(rank);
    }

    void plan() {
      int wire = tasks.pool("wire");
      for (int chunk = 0; chunk < chunks.perRank(); chunk++) {
        for (int hop = 1; hop < topology.nodes(); hop++) {
          sendTo((node + hop) % topology.nodes(), chunk);
        }
      }
      int forward = tasks.pool("forward");
      for (int chunk = 0; chunk < chunks.perRank(); chunk++) {
        for (int hop = 1; hop < topology.nodes(); hop++) {
          forwardFrom(Math.floorMod(node - hop, topology.nodes()), chunk);
        }
      }
      int local = tasks.pool("local");
      for (int chunk = 0; chunk < chunks.perRank(); chunk++) {
        sendTo(node, chunk);
      }
      if (topology.size() > 1) {
        Roles.communicate(tasks, new int[] {wire, forward, local});
      }
      int pool = tasks.pool("copy");
      copyOwn();
      awaitArrivals();
      tasks.role("compute", true, pool);
    }

    /** Sends a chunk to each rank of a node, from the next local index on. */
    private void sendTo(int to, int chunk) {
      int ranks = topology.ranks(to);
      for (int step = 1; step <= ranks; step++) {
        int owner = topology.rank(to, (topology.localIndex(rank) + step) % ranks);
        if (owner == rank || chunk >= chunks.count(owner)) {
          continue;
        }
        int from = a.region(tasks, rank, chunks.first(owner, chunk), chunks.rows(owner, chunk));
        int relay = to == node ? owner : topology.railPeer(rank, to);
        if (relay == owner) {
          tasks.put(from, output(rank, owner, chunk), arrived(rank, chunk));
          tasks.awaitEntered(owner, c);
        } else {
          tasks.put(from, relayed(relay, rank, owner, chunk), relayedFlag(rank, owner, chunk));
          tasks.awaitEntered(relay, relayed);
        }
      }
    }

    /** Passes on what came along the rails from a node. */
    private void forwardFrom(int from, int chunk) {
      for (int index = 0; index < topology.ranks(from); index++) {
        int source = topology.rank(from, index);
        if (topology.railPeer(source, node) != rank) {
          continue;
        }
        int ranks = topology.ranks(node);
        for (int step = 1; step < ranks; step++) {
          int owner = topology.rank(node, (topology.localIndex(rank) + step) % ranks);
          if (chunk < chunks.count(owner)) {
            tasks.put(
                relayed(rank, source, owner, chunk),
                output(source, owner, chunk),
                arrived(source, chunk));
            tasks.await(relayedFlag(source, owner, chunk));
            tasks.awaitEntered(owner, c);
          }
        }
      }
    }

    private void copyOwn() {
      for (int chunk = 0; chunk < chunks.count(rank); chunk++) {
        tasks.compute(copy).stream()
            .part(a.region(tasks, rank, chunks.first(rank, chunk), chunks.rows(rank, chunk)))
            .output(output(rank, rank, chunk));
      }
    }

    /** A launch is over when all is here: somebody must wait for what nobody computes with. */
    private void awaitArrivals() {
      for (int chunk = 0; chunk < chunks.count(rank); chunk++) {
        for (int step = 1; step < topology.size(); step++) {
          tasks.notifies().await(arrived(Math.floorMod(rank - step, topology.size()), chunk));
        }
      }
    }

    private int arrived(int source, int chunk) {
      return arrived + source * chunks.perRank() + chunk;
    }

    private int relayedFlag(int source, int owner, int chunk) {
      return relayedFlag + place(source, owner) * chunks.perRank() + chunk;
    }

    private int place(int source, int owner) {
      return rails.number(source, topology.node(owner)) * rails.localRanks()
          + topology.localIndex(owner);
    }

    private int relayed(int relay, int source, int owner, int chunk) {
      return region(relay, relayed, place(source, owner) * blocks.block(), owner, chunk);
    }

    /** Where a chunk ends up. */
    private int output(int source, int owner, int chunk) {
      return region(owner, c, source * blocks.count(owner), owner, chunk);
    }

    private int region(int holder, int buffer, long firstOfBlock, int owner, int chunk) {
      long row = firstOfBlock + chunks.first(owner, chunk) - blocks.first(owner);
      return tasks.regionOf(
          holder,
          buffer,
          row * a.rowBytes(),
          chunks.rows(owner, chunk),
          a.rowBytes(),
          a.rowBytes());
    }
  }
}
