package org.mkernel.check;

import java.util.List;
import org.mkernel.api.schedule.RankSchedule;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.schedule.TaskKind;

/**
 * Proves a schedule before anything runs it: structure, lanes, signals, absence of deadlocks and
 * races, and coverage of outputs. Time and memory are linear in the schedule, apart from sorting
 * and from conflicting pairs that no direct signal orders.
 */
public final class ScheduleChecker {
  private static final List<String> ASSUMPTIONS =
      List.of("kernels read and write no more than the regions that their tasks name");

  private ScheduleChecker() {}

  /**
   * Checks a schedule.
   *
   * @param schedule of all ranks
   * @return the verdict; a bad schedule never throws
   */
  public static CheckReport check(Schedule schedule) {
    Findings findings = new Findings(schedule);
    new StructureCheck(schedule, findings).run();
    // The other rules follow indices: they need a sound structure.
    if (findings.isEmpty()) {
      SignalTable signals = new SignalTable(schedule);
      signals.check(findings);
      new DeadlockCheck(schedule, signals).run(findings);
      if (findings.isEmpty()) {
        new RaceCheck(schedule, signals, findings).run();
      }
    }
    return new CheckReport(
        schedule.name(),
        findings.list(),
        ASSUMPTIONS,
        findings.isEmpty() ? payload(schedule, true) : 0,
        findings.isEmpty() ? payload(schedule, false) : 0);
  }

  private static long payload(Schedule schedule, boolean sameNode) {
    long bytes = 0;
    for (int rank = 0; rank < schedule.topology().size(); rank++) {
      RankSchedule tasks = schedule.rank(rank);
      for (int task = 0; task < tasks.tasks(); task++) {
        if (tasks.kind(task) == TaskKind.PUT) {
          int target = tasks.output(tasks.firstOutput(task));
          if (schedule.topology().sameNode(rank, tasks.regionRank(target)) == sameNode) {
            bytes += tasks.regionBytes(target);
          }
        }
      }
    }
    return bytes;
  }
}
