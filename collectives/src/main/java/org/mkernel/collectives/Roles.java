package org.mkernel.collectives;

import java.util.Arrays;
import org.mkernel.api.schedule.ScheduleBuilder;

/**
 * The two roles that every plan has: what is ready goes first in both, so that neither a late peer
 * nor a late chunk holds up the others.
 */
final class Roles {
  private Roles() {}

  /** Declares the role that moves, unless there is nothing to move. */
  static void communicate(ScheduleBuilder.RankBuilder tasks, int[]... pools) {
    int[] all = Arrays.stream(pools).flatMapToInt(Arrays::stream).toArray();
    if (all.length > 0) {
      tasks.readyFirstRole("communication", false, all);
    }
  }

  /** Declares the role that computes. */
  static void compute(ScheduleBuilder.RankBuilder tasks, int[]... pools) {
    tasks.readyFirstRole(
        "compute", true, Arrays.stream(pools).flatMapToInt(Arrays::stream).toArray());
  }
}
