package org.mkernel.collectives;

import org.mkernel.api.DType;
import org.mkernel.api.UsageException;
import org.mkernel.api.schedule.ScheduleBuilder;
import org.mkernel.api.schedule.SignalSpec;
import org.mkernel.api.schedule.Topology;

/**
 * The reduction that operators share, the mirror image of {@link GatherPlan}: every rank has
 * addends for all rows, and ends up with the sums of its own. On each node the rank that is on the
 * rail of a row's owner collects the addends of its neighbours, adds them up, and sends one partial
 * sum along the rail. Between nodes a row so travels once from each node.
 *
 * <p>Every addend has a place and a flag of its own, and a sum reads them in one order: the owner
 * adds the addends of its own node by local index, then the partial sums of the other nodes by
 * number; a partial sum is of addends by local index. Bits so depend on nothing that time decides.
 */
class ReducePlan {
  /** Slots of what peers write: the next launch may send while this one still adds. */
  private static final int DEPTH = 2;

  private static final int NONE = -1;

  /**
   * What every rank brings.
   *
   * @param rows all rows
   * @param dtype their type
   * @param ready when they are there
   */
  record Addends(RowBuffer rows, DType dtype, Ready ready) {}

  /**
   * How a rank's own sums are finished.
   *
   * @param rows where they go
   * @param kernel what adds up and finishes, or −1 to only add up
   * @param bias a buffer of one row that the kernel adds, or −1
   * @param done the first of the flags that its tasks raise, one per chunk, or −1
   */
  record Sums(RowBuffer rows, int kernel, int bias, int done) {
    /** Sums that are only added up. */
    static Sums plain(RowBuffer rows) {
      return new Sums(rows, NONE, NONE, NONE);
    }

    /** Raises flags. */
    Sums raising(int first) {
      return new Sums(rows, kernel, bias, first);
    }
  }

  /** Receives chunks of rows. */
  @FunctionalInterface
  interface ChunkVisitor {
    void visit(int owner, int chunk);
  }

  private final ScheduleBuilder builder;
  private final Topology topology;
  private final Rails rails;
  private final RowChunks chunks;
  private final Addends addends;
  private final Sums sums;
  private final DType partials;
  private final long partialRowBytes;
  private final int neighbours;
  private final int collected;
  private final int partial;
  private final int received;
  private final int collectedFlag;
  private final int partialFlag;
  private final int receivedFlag;

  /**
   * Declares workspace and signals.
   *
   * @param partials the type in which partial sums travel
   */
  ReducePlan(
      ScheduleBuilder builder, RowChunks chunks, Addends addends, DType partials, Sums sums) {
    this.builder = builder;
    this.topology = builder.topology();
    this.rails = new Rails(topology);
    this.chunks = chunks;
    this.addends = addends;
    this.sums = sums;
    this.partials = partials;
    this.partialRowBytes = addends.rows.rowBytes() / addends.dtype.bytes() * partials.bytes();
    this.neighbours = rails.localRanks() - 1;
    int nodes = topology.nodes();
    long block = chunks.sharding().block();
    collected =
        neighbours > 0
            ? builder.workspace(
                "collected",
                addends.dtype,
                (long) rails.all() * neighbours * block * addends.rows.rowBytes(),
                DEPTH)
            : NONE;
    partial =
        nodes > 1 && (neighbours > 0 || addends.dtype != partials)
            ? builder.workspace("partial", partials, rails.remote() * block * partialRowBytes, 1)
            : NONE;
    received =
        nodes > 1
            ? builder.workspace("received", partials, (nodes - 1) * block * partialRowBytes, DEPTH)
            : NONE;
    collectedFlag = flags("collected", (long) rails.all() * neighbours, SignalSpec.Scope.SYSTEM);
    partialFlag = flags("partial", rails.remote(), SignalSpec.Scope.DEVICE);
    receivedFlag = flags("received", nodes - 1, SignalSpec.Scope.SYSTEM);
  }

  private int flags(String name, long places, SignalSpec.Scope scope) {
    long count = places * chunks.perRank();
    if (count > Integer.MAX_VALUE / 4) {
      throw new UsageException(
          "%d flags \"%s\" would be needed on each rank; raise %s, or use nodes of one size"
              .formatted(count, name, Tuning.CHUNK_ROWS.name()));
    }
    return count == 0 ? NONE : builder.flags(name, (int) count, scope);
  }

  /**
   * Writes the puts of one rank, for a role whose lanes take what is ready.
   *
   * @return their pools
   */
  int[] send(int rank) {
    if (topology.size() == 1) {
      return new int[0];
    }
    ScheduleBuilder.RankBuilder tasks = builder.rank(rank);
    RankTasks own = new RankTasks(rank);
    int wire = tasks.pool("partials");
    visit(rank, own::putPartial);
    int local = tasks.pool("addends");
    visit(rank, own::putAddends);
    return new int[] {wire, local};
  }

  /**
   * Writes the sums of one rank, for a role that computes. Its lanes may take what is ready.
   *
   * @return their pools: partial sums, which other nodes wait for, then its own
   */
  int[] reduce(int rank) {
    ScheduleBuilder.RankBuilder tasks = builder.rank(rank);
    RankTasks own = new RankTasks(rank);
    int first = tasks.pool("reduce");
    visit(rank, own::addUpForOther);
    int last = tasks.pool("finish");
    for (int chunk = 0; chunk < chunks.count(rank); chunk++) {
      own.finish(chunk);
    }
    return new int[] {first, last};
  }

  /**
   * Visits all chunks in the order in which a rank works on them: those of other nodes first, from
   * the next node on; then those of its neighbours, from the next rank on; its own last.
   */
  void visit(int rank, ChunkVisitor visitor) {
    int node = topology.node(rank);
    for (int chunk = 0; chunk < chunks.perRank(); chunk++) {
      for (int hop = 1; hop < topology.nodes(); hop++) {
        visit(rank, (node + hop) % topology.nodes(), chunk, visitor);
      }
    }
    for (int chunk = 0; chunk < chunks.perRank(); chunk++) {
      visit(rank, node, chunk, visitor);
    }
  }

  private void visit(int rank, int node, int chunk, ChunkVisitor visitor) {
    int ranks = topology.ranks(node);
    for (int step = 1; step <= ranks; step++) {
      int owner = topology.rank(node, (topology.localIndex(rank) + step) % ranks);
      if (chunk < chunks.count(owner)) {
        visitor.visit(owner, chunk);
      }
    }
  }

  /** The tasks of one rank. */
  private final class RankTasks {
    private final int rank;
    private final int node;
    private final ScheduleBuilder.RankBuilder tasks;

    /** Whether what this rank brings is the partial sum of its node, as it is. */
    private final boolean direct;

    RankTasks(int rank) {
      this.rank = rank;
      this.node = topology.node(rank);
      this.tasks = builder.rank(rank);
      this.direct = topology.ranks(node) == 1 && addends.dtype == partials;
    }

    private boolean standsFor(int owner) {
      return rails.standIn(owner, node) == rank;
    }

    /** Sends addends to the neighbour that stands for their owner. */
    void putAddends(int owner, int chunk) {
      if (standsFor(owner)) {
        return;
      }
      int collector = rails.standIn(owner, node);
      tasks.put(
          ownAddends(owner, chunk),
          collected(collector, rank, owner, chunk),
          collectedFlag(collector, rank, owner, chunk));
      addends.ready.await(tasks, owner, chunk);
      tasks.awaitEntered(collector, collected);
    }

    /** Sends the partial sum of this node to the owner of the rows. */
    void putPartial(int owner, int chunk) {
      if (topology.node(owner) == node || !standsFor(owner)) {
        return;
      }
      int place = Rails.other(node, topology.node(owner));
      tasks.put(
          direct ? ownAddends(owner, chunk) : partial(owner, chunk),
          region(owner, received, place, partialRowBytes, owner, chunk),
          receivedFlag + place * chunks.perRank() + chunk);
      if (direct) {
        addends.ready.await(tasks, owner, chunk);
      } else {
        tasks.await(partialFlag(owner, chunk));
      }
      tasks.awaitEntered(owner, received);
    }

    /** Adds up what this node has for a rank of another one. */
    void addUpForOther(int owner, int chunk) {
      if (topology.node(owner) == node || !standsFor(owner) || direct) {
        return;
      }
      tasks.reduce().stream();
      readNode(owner, chunk);
      tasks.output(partial(owner, chunk)).raise(rank, partialFlag(owner, chunk));
    }

    /** Adds up what all nodes have for this rank. */
    void finish(int chunk) {
      if (sums.kernel == NONE) {
        tasks.reduce().stream();
      } else {
        tasks.compute(sums.kernel).stream();
      }
      readNode(rank, chunk);
      for (int other = 0; other < topology.nodes(); other++) {
        if (other != node) {
          int place = Rails.other(other, node);
          tasks.part(region(rank, received, place, partialRowBytes, rank, chunk));
          tasks.await(receivedFlag + place * chunks.perRank() + chunk);
        }
      }
      if (sums.bias != NONE) {
        long bytes = sums.rows.rowBytes();
        tasks.stream().part(tasks.region(sums.bias, 0, 1, bytes, bytes));
      }
      tasks.output(
          sums.rows.region(tasks, rank, chunks.first(rank, chunk), chunks.rows(rank, chunk)));
      if (sums.done != NONE) {
        tasks.raise(rank, sums.done + chunk);
      }
    }

    /** Reads the addends of this node, in the order of its ranks. */
    private void readNode(int owner, int chunk) {
      for (int index = 0; index < topology.ranks(node); index++) {
        int source = topology.rank(node, index);
        if (source == rank) {
          tasks.part(ownAddends(owner, chunk));
          addends.ready.await(tasks, owner, chunk);
        } else {
          tasks.part(collected(rank, source, owner, chunk));
          tasks.await(collectedFlag(rank, source, owner, chunk));
        }
      }
    }

    private int ownAddends(int owner, int chunk) {
      return addends.rows.region(
          tasks, rank, chunks.first(owner, chunk), chunks.rows(owner, chunk));
    }

    private int collected(int collector, int source, int owner, int chunk) {
      int place = place(collector, source, owner);
      return region(collector, collected, place, addends.rows.rowBytes(), owner, chunk);
    }

    private int collectedFlag(int collector, int source, int owner, int chunk) {
      return collectedFlag + place(collector, source, owner) * chunks.perRank() + chunk;
    }

    private int place(int collector, int source, int owner) {
      int neighbour = Rails.other(topology.localIndex(source), topology.localIndex(collector));
      return rails.number(owner, node) * neighbours + neighbour;
    }

    private int partial(int owner, int chunk) {
      return region(rank, partial, rails.number(owner, node), partialRowBytes, owner, chunk);
    }

    private int partialFlag(int owner, int chunk) {
      return partialFlag + rails.number(owner, node) * chunks.perRank() + chunk;
    }

    /** A chunk in a buffer that has places for blocks of rows. */
    private int region(int holder, int buffer, int place, long rowBytes, int owner, int chunk) {
      long row = chunks.first(owner, chunk) - chunks.sharding().first(owner);
      return tasks.regionOf(
          holder,
          buffer,
          (place * chunks.sharding().block() + row) * rowBytes,
          chunks.rows(owner, chunk),
          rowBytes,
          rowBytes);
    }
  }
}
