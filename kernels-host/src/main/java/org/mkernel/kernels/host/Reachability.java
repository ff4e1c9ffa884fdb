package org.mkernel.kernels.host;

import org.mkernel.api.Failure;
import org.mkernel.api.UsageException;
import org.mkernel.api.schedule.RankSchedule;
import org.mkernel.api.schedule.TaskKind;
import org.mkernel.api.spi.ExecutionPlan;

/**
 * Looks, once, whether lanes can follow every address that they will use: at run time an address
 * that is missing would end the process.
 */
final class Reachability {
  private final ExecutionPlan plan;
  private final RankSchedule tasks;

  private Reachability(ExecutionPlan plan) {
    this.plan = plan;
    this.tasks = plan.schedule().rank(plan.rank());
  }

  static void check(ExecutionPlan plan) {
    new Reachability(plan).check();
  }

  private void check() {
    for (int task = 0; task < tasks.tasks(); task++) {
      boolean wired = plan.transfer(task) >= 0;
      if (wired && tasks.kind(task) != TaskKind.PUT && tasks.kind(task) != TaskKind.NOTIFY) {
        throw unreachable(task, "goes by wire, which only puts and notifies can");
      }
      if (wired) {
        continue;
      }
      int firstPart = tasks.firstPart(tasks.firstStream(task));
      int lastPart = tasks.firstPart(tasks.firstStream(task + 1));
      for (int part = firstPart; part < lastPart; part++) {
        region(task, tasks.partRegion(part));
      }
      for (int output = tasks.firstOutput(task); output < tasks.firstOutput(task + 1); output++) {
        region(task, tasks.output(output));
      }
      for (int raise = tasks.firstRaise(task); raise < tasks.firstRaise(task + 1); raise++) {
        if (plan.signals(tasks.raiseRank(raise)) == 0) {
          throw unreachable(task, "raises a signal of rank " + tasks.raiseRank(raise));
        }
      }
    }
  }

  private void region(int task, int region) {
    int owner = tasks.regionRank(region);
    if (plan.buffer(owner, tasks.regionBuffer(region)) == 0) {
      String name = plan.schedule().buffers().get(tasks.regionBuffer(region)).name();
      throw unreachable(task, "uses the buffer %s of rank %d".formatted(name, owner));
    }
  }

  private UsageException unreachable(int task, String what) {
    String words = plan.schedule().describe(plan.rank(), task);
    return new UsageException(
        "%s %s, which is not mapped here".formatted(words, what),
        Failure.remedy("plan a put, or a notify of one signal, to ranks of other nodes")
            .withRank(plan.rank())
            .withTask(words));
  }
}
