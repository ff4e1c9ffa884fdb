package org.mkernel.collectives;

import java.util.List;
import java.util.Map;
import org.mkernel.api.schedule.Kernel;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.schedule.ScheduleBuilder;
import org.mkernel.api.schedule.Topology;
import org.mkernel.api.spi.OperandSpec;
import org.mkernel.api.spi.Problem;

/**
 * Plans {@code broadcast}: the root deals its elements out to the ranks of its node, and these are
 * gathered by all. So every rail of the root's node carries a share of what goes to other nodes.
 */
final class BroadcastPlan {
  private final Topology topology;
  private final int root;
  private final ScheduleBuilder builder;
  private final RowChunks chunks;
  private final RowBuffer a;
  private final RowBuffer c;
  private final int copy;
  private final GatherPlan gather;

  BroadcastPlan(Problem problem, List<OperandSpec> operands, int root) {
    this.topology = problem.topology();
    this.root = root;
    this.builder = new ScheduleBuilder(problem.operator(), topology);
    RowSharding elements = RowSharding.ofElementsOnNode(problem, root);
    long bytes = problem.dtype().bytes();
    chunks =
        new RowChunks(
            elements, Tuning.chunkElements(problem, elements.block()), Tuning.CHUNK_ELEMENTS);
    a = RowBuffer.whole(Operands.declare(operands.getFirst(), problem, builder), bytes, elements);
    c = RowBuffer.whole(Operands.declare(operands.getLast(), problem, builder), bytes, elements);
    copy = builder.kernel(new Kernel(Kernel.COPY, Map.of()));
    gather = new GatherPlan(builder, chunks, rank -> rank == root ? a : c, this::awaitDealt, c);
  }

  /** On its owner the arrival flag of a chunk says that the root has dealt it out. */
  private void awaitDealt(ScheduleBuilder.RankBuilder tasks, int owner, int chunk) {
    if (owner != root) {
      tasks.await(gather.arrived(owner, chunk));
    }
  }

  Schedule plan() {
    for (int rank = 0; rank < topology.size(); rank++) {
      ScheduleBuilder.RankBuilder tasks = builder.rank(rank);
      int deal = tasks.pool("deal");
      if (rank == root) {
        deal();
      }
      Roles.communicate(tasks, new int[] {deal}, gather.send(rank));
      int arrivals = tasks.pool("copy");
      if (rank == root) {
        copyOwn();
      }
      gather.awaitArrivals(rank);
      tasks.role("compute", true, arrivals);
    }
    return builder.build();
  }

  private void deal() {
    ScheduleBuilder.RankBuilder tasks = builder.rank(root);
    int node = topology.node(root);
    for (int chunk = 0; chunk < chunks.perRank(); chunk++) {
      for (int step = 1; step < topology.ranks(node); step++) {
        int owner = topology.rank(node, (topology.localIndex(root) + step) % topology.ranks(node));
        if (chunk < chunks.count(owner)) {
          long first = chunks.first(owner, chunk);
          long count = chunks.rows(owner, chunk);
          tasks.put(
              a.region(tasks, root, first, count),
              c.regionOf(tasks, owner, first, count),
              gather.arrived(owner, chunk));
          tasks.awaitEntered(owner, c.buffer());
        }
      }
    }
  }

  /** What the root dealt out it receives again: to copy it would cost as much. */
  private void copyOwn() {
    ScheduleBuilder.RankBuilder tasks = builder.rank(root);
    for (int chunk = 0; chunk < chunks.count(root); chunk++) {
      long first = chunks.first(root, chunk);
      long count = chunks.rows(root, chunk);
      tasks.compute(copy).stream()
          .part(a.region(tasks, root, first, count))
          .output(c.region(tasks, root, first, count));
    }
  }
}
