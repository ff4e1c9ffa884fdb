package org.mkernel.collectives;

import org.mkernel.api.schedule.ScheduleBuilder;

/** When rows of a rank are there to be read by its tasks. */
@FunctionalInterface
interface Ready {
  /** From the start. */
  Ready ALWAYS = (tasks, owner, chunk) -> {};

  /** Makes the task that was started last wait for a chunk of the rows of {@code owner}. */
  void await(ScheduleBuilder.RankBuilder tasks, int owner, int chunk);
}
