package org.mkernel.check;

import java.util.Arrays;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.mkernel.api.schedule.RankSchedule;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.schedule.SignalSpec;
import org.mkernel.api.schedule.TaskKind;

/** Who raises and who awaits each copy of each signal, in columns. */
final class SignalTable {
  private final Schedule schedule;
  private final int signals;
  private final boolean[] counter;

  /** By copy: where its raisers start in {@link #raiser}. */
  private final int[] firstRaiser;

  /** Global numbers of tasks. */
  private final int[] raiser;

  /** By copy: one plus the smallest lag of a wait for it, or 0 when nobody waits. */
  private final int[] awaited;

  private final int[] taskBase;

  /** By global number of a task. */
  private final int[] rankOf;

  SignalTable(Schedule schedule) {
    this.schedule = schedule;
    this.signals = schedule.signalCount();
    int ranks = schedule.topology().size();
    counter = new boolean[signals];
    for (SignalSpec spec : schedule.signals()) {
      Arrays.fill(
          counter,
          spec.first(),
          spec.first() + spec.count(),
          spec.kind() == SignalSpec.Kind.COUNTER);
    }
    taskBase = new int[ranks + 1];
    for (int rank = 0; rank < ranks; rank++) {
      taskBase[rank + 1] = Math.addExact(taskBase[rank], schedule.rank(rank).tasks());
    }
    rankOf = new int[taskBase[ranks]];
    for (int rank = 0; rank < ranks; rank++) {
      Arrays.fill(rankOf, taskBase[rank], taskBase[rank + 1], rank);
    }
    firstRaiser = new int[Math.multiplyExact(ranks, signals) + 1];
    awaited = new int[ranks * signals];
    for (int rank = 0; rank < ranks; rank++) {
      RankSchedule tasks = schedule.rank(rank);
      for (int raise = 0; raise < tasks.firstRaise(tasks.tasks()); raise++) {
        firstRaiser[copy(tasks.raiseRank(raise), tasks.raiseSignal(raise)) + 1]++;
      }
      for (int wait = 0; wait < tasks.waits(); wait++) {
        await(copy(rank, tasks.waitSignal(wait)), tasks.waitLag(wait));
      }
      int parts = tasks.firstPart(tasks.firstStream(tasks.tasks()));
      for (int part = 0; part < parts; part++) {
        if (tasks.partSignal(part) != RankSchedule.NO_SIGNAL) {
          await(copy(rank, tasks.partSignal(part)), tasks.partLag(part));
        }
      }
    }
    for (int copy = 0; copy < ranks * signals; copy++) {
      firstRaiser[copy + 1] += firstRaiser[copy];
    }
    raiser = new int[firstRaiser[ranks * signals]];
    int[] next = Arrays.copyOf(firstRaiser, ranks * signals);
    for (int rank = 0; rank < ranks; rank++) {
      RankSchedule tasks = schedule.rank(rank);
      for (int task = 0; task < tasks.tasks(); task++) {
        for (int raise = tasks.firstRaise(task); raise < tasks.firstRaise(task + 1); raise++) {
          raiser[next[copy(tasks.raiseRank(raise), tasks.raiseSignal(raise))]++] =
              taskBase[rank] + task;
        }
      }
    }
  }

  private void await(int copy, int lag) {
    int one = Math.min(lag, Integer.MAX_VALUE - 1) + 1;
    awaited[copy] = awaited[copy] == 0 ? one : Math.min(awaited[copy], one);
  }

  /** The number of a signal's copy on a rank. */
  int copy(int rank, int signal) {
    return rank * signals + signal;
  }

  int ownerOf(int copy) {
    return copy / signals;
  }

  int copies() {
    return awaited.length;
  }

  int firstRaiser(int copy) {
    return firstRaiser[copy];
  }

  /** A task that raises, by global number. */
  int raiser(int index) {
    return raiser[index];
  }

  /** The smallest lag of a wait for a copy; −1 when nobody waits. */
  int awaitedLag(int copy) {
    return awaited[copy] - 1;
  }

  int tasks() {
    return taskBase[taskBase.length - 1];
  }

  /** The global number of the first task of a rank. */
  int taskBase(int rank) {
    return taskBase[rank];
  }

  int rankOf(int global) {
    return rankOf[global];
  }

  TaskKind kind(int global) {
    int rank = rankOf[global];
    return schedule.rank(rank).kind(global - taskBase[rank]);
  }

  /** The copy of the flag by which a put announces its arrival. */
  int arrival(int put) {
    int rank = rankOf[put];
    RankSchedule tasks = schedule.rank(rank);
    int raise = tasks.firstRaise(put - taskBase[rank]);
    return copy(tasks.raiseRank(raise), tasks.raiseSignal(raise));
  }

  /** The number of raises by all tasks. */
  int raises() {
    return raiser.length;
  }

  /** What tasks of a rank wait for: copy in the upper half, lag in the lower, without repeats. */
  long[] waitsOf(int rank) {
    RankSchedule tasks = schedule.rank(rank);
    int parts = tasks.firstPart(tasks.firstStream(tasks.tasks()));
    LongStream ofTasks =
        IntStream.range(0, tasks.waits())
            .mapToLong(w -> (long) copy(rank, tasks.waitSignal(w)) << 32 | tasks.waitLag(w));
    LongStream ofParts =
        IntStream.range(0, parts)
            .filter(p -> tasks.partSignal(p) != RankSchedule.NO_SIGNAL)
            .mapToLong(p -> (long) copy(rank, tasks.partSignal(p)) << 32 | tasks.partLag(p));
    return LongStream.concat(ofTasks, ofParts).sorted().distinct().toArray();
  }

  Finding.TaskId id(int global) {
    int rank = rankOf(global);
    return new Finding.TaskId(rank, global - taskBase[rank]);
  }

  String describe(int global) {
    Finding.TaskId id = id(global);
    return schedule.describe(id.rank(), id.task());
  }

  /** Flags with one raiser, counters with raisers of one rank, waits for what is raised. */
  void check(Findings findings) {
    for (int rank = 0; rank < schedule.topology().size(); rank++) {
      for (int signal = 0; signal < signals; signal++) {
        raisers(findings, rank, signal);
      }
      RankSchedule tasks = schedule.rank(rank);
      for (int task = 0; task < tasks.tasks(); task++) {
        for (int wait = tasks.firstWait(task); wait < tasks.firstWait(task + 1); wait++) {
          wait(findings, rank, task, tasks.waitSignal(wait), tasks.waitCount(wait));
        }
        int end = tasks.firstPart(tasks.firstStream(task + 1));
        for (int part = tasks.firstPart(tasks.firstStream(task)); part < end; part++) {
          if (tasks.partSignal(part) != RankSchedule.NO_SIGNAL) {
            wait(findings, rank, task, tasks.partSignal(part), tasks.partCount(part));
          }
        }
      }
    }
  }

  private void raisers(Findings findings, int rank, int signal) {
    int first = firstRaiser[copy(rank, signal)];
    int end = firstRaiser[copy(rank, signal) + 1];
    if (end - first < 2) {
      return;
    }
    int one = raiser[first];
    for (int i = first + 1; i < end; i++) {
      int other = raiser[i];
      if (!counter[signal] || rankOf(one) != rankOf(other)) {
        findings.add(
            Finding.Rule.SIGNALS,
            "%s of rank %d is raised by %s and by %s; %s"
                .formatted(
                    schedule.signalName(signal),
                    rank,
                    describe(one),
                    describe(other),
                    counter[signal]
                        ? "a counter is raised by tasks of one rank"
                        : "a flag has one raiser"),
            id(one),
            id(other));
        return;
      }
    }
  }

  private void wait(Findings findings, int rank, int task, int signal, int count) {
    int raisers = firstRaiser[copy(rank, signal) + 1] - firstRaiser[copy(rank, signal)];
    if (raisers == 0) {
      findings.of(
          Finding.Rule.SIGNALS,
          rank,
          task,
          "waits for %s, which no task raises".formatted(schedule.signalName(signal)));
    } else if (count != (counter[signal] ? raisers : 1)) {
      int raiser = raiser(firstRaiser[copy(rank, signal)]);
      findings.add(
          Finding.Rule.SIGNALS,
          "%s waits for %d raises of %s; an epoch has %d, the first by %s"
              .formatted(
                  schedule.describe(rank, task),
                  count,
                  schedule.signalName(signal),
                  counter[signal] ? raisers : 1,
                  describe(raiser)),
          new Finding.TaskId(rank, task),
          id(raiser));
    }
  }
}
