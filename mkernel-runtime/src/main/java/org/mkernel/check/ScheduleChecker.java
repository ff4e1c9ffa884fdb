package org.mkernel.check;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.mkernel.api.schedule.RankSchedule;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.schedule.TaskKind;

/**
 * Proves a schedule before anything runs it: structure, lanes, signals, absence of deadlocks and
 * races, supply of what is read, and coverage of outputs. Time and memory are linear in the
 * schedule, apart from sorting and from conflicting pairs that no direct signal orders.
 *
 * <p>The launch boundary orders all tasks of a rank in an epoch before all of its tasks in the
 * next, and before the caller's use of its operands. It covers what peers write into the rank only
 * if one of its tasks waited for the write.
 */
public final class ScheduleChecker {
  /** Numbers of tasks and of copies of signals, together, are ints. */
  private static final long MAX_NODES = Integer.MAX_VALUE - 16;

  private ScheduleChecker() {}

  /**
   * Checks a schedule.
   *
   * @param schedule of all ranks
   * @return the verdict; a bad schedule never throws
   */
  public static CheckReport check(Schedule schedule) {
    Findings findings = new Findings(schedule);
    Set<String> rewritten = Set.of();
    Finding.Rule reached = Finding.Rule.LANES;
    new StructureCheck(schedule, findings).run();
    size(schedule, findings);
    // The other rules follow indices: they need a sound structure.
    if (findings.isEmpty()) {
      SignalTable signals = new SignalTable(schedule);
      signals.check(findings);
      int[] position = new DeadlockCheck(schedule, signals).run(findings);
      reached = Finding.Rule.DEADLOCK;
      if (findings.isEmpty()) {
        RaceCheck races = new RaceCheck(schedule, signals, position, findings);
        races.run();
        rewritten = races.rewritten();
        reached = Finding.Rule.COVERAGE;
      }
    }
    return new CheckReport(
        schedule.name(),
        findings.list(),
        claims(findings, reached, rewritten),
        findings.isEmpty() ? payload(schedule, true) : 0,
        findings.isEmpty() ? payload(schedule, false) : 0);
  }

  private static void size(Schedule schedule, Findings findings) {
    long nodes = schedule.tasks() + (long) schedule.topology().size() * schedule.signalCount();
    if (nodes > MAX_NODES) {
      findings.add(
          Finding.Rule.STRUCTURE,
          "%d tasks and signals of all ranks; at most %d can be checked"
              .formatted(nodes, MAX_NODES));
    }
  }

  private static List<Claim> claims(
      Findings findings, Finding.Rule reached, Set<String> rewritten) {
    List<Claim> claims = new ArrayList<>();
    for (Finding.Rule rule : Finding.Rule.values()) {
      Claim.Verdict verdict;
      String reason;
      if (findings.has(rule)) {
        verdict = Claim.Verdict.BROKEN;
        reason = "see the findings";
      } else if (rule.compareTo(reached) > 0 || findings.isFull()) {
        verdict = Claim.Verdict.UNKNOWN;
        reason = "other findings come first";
      } else {
        verdict = Claim.Verdict.PROVEN;
        reason = "for every timing and every number of lanes";
      }
      claims.add(new Claim(rule.statement(), verdict, reason));
    }
    claims.add(
        new Claim(
            "kernels read and write no more than the regions that their tasks name, and write"
                + " after they have read",
            Claim.Verdict.ASSUMED,
            "the schedule does not say what a kernel does inside"));
    claims.add(
        new Claim(
            "a flag of a put is seen only after all of its bytes",
            Claim.Verdict.ASSUMED,
            "it is the contract of ports and wires"));
    claims.add(
        new Claim(
            "launches of a rank are ordered, and each ends after its tasks and the sources of its"
                + " puts are done",
            Claim.Verdict.ASSUMED,
            "it is the contract of executors"));
    if (!rewritten.isEmpty()) {
      claims.add(
          new Claim(
              "what is read of %s is written before".formatted(String.join(", ", rewritten)),
              Claim.Verdict.ASSUMED,
              "its bytes are written more than once in a launch, which is not accounted"));
    }
    claims.add(
        new Claim(
            "all ranks run this schedule",
            Claim.Verdict.CHECKED_AT_RUN_TIME,
            "digests are compared before the first launch"));
    return claims;
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
