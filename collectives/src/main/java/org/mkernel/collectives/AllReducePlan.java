package org.mkernel.collectives;

import java.util.stream.IntStream;
import org.mkernel.api.DType;
import org.mkernel.api.schedule.ScheduleBuilder;
import org.mkernel.api.schedule.SignalSpec;

/**
 * A reduction whose sums go to all: a {@link ReducePlan}, each chunk of which is the source of a
 * {@link GatherPlan} as soon as it is summed. Every sum is computed once, so that all ranks have
 * the same bits.
 */
final class AllReducePlan extends ReducePlan {
  private final ScheduleBuilder builder;
  private final GatherPlan gather;

  private AllReducePlan(
      ScheduleBuilder builder,
      RowChunks chunks,
      Addends addends,
      DType partials,
      Sums sums,
      int summed) {
    super(builder, chunks, addends, partials, sums.raising(summed));
    this.builder = builder;
    this.gather =
        new GatherPlan(
            builder,
            chunks,
            rank -> sums.rows(),
            (tasks, owner, chunk) -> tasks.await(summed + chunk),
            sums.rows());
  }

  /** As {@link ReducePlan}; every rank has room for all sums. */
  static AllReducePlan of(
      ScheduleBuilder builder, RowChunks chunks, Addends addends, DType partials, Sums sums) {
    int summed = builder.flags("summed", chunks.perRank(), SignalSpec.Scope.DEVICE);
    return new AllReducePlan(builder, chunks, addends, partials, sums, summed);
  }

  @Override
  int[] send(int rank) {
    return concat(super.send(rank), gather.send(rank));
  }

  @Override
  int[] reduce(int rank) {
    int[] sums = super.reduce(rank);
    int arrivals = builder.rank(rank).pool("arrivals");
    gather.awaitArrivals(rank);
    return concat(sums, new int[] {arrivals});
  }

  private static int[] concat(int[] first, int[] second) {
    return IntStream.concat(IntStream.of(first), IntStream.of(second)).toArray();
  }
}
