package org.mkernel.check;

import java.util.Arrays;
import org.mkernel.api.schedule.RankSchedule;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.schedule.TaskKind;

/**
 * Whether one access happens before another, over epochs. Edges lead from a task that raises to one
 * that waits, and from all tasks of a rank's launch to its next launch. What a put writes is
 * ordered only by its own flag, at its destination. The order of claims orders nothing.
 */
final class HappensBefore {
  private final Schedule schedule;
  private final SignalTable signals;
  private final int tasks;
  private final int ranks;

  /** Marks of a search, by node and epoch back; a search has a number of its own. */
  private final int[][] visited;

  private int search;
  private final Stack stack = new Stack();

  /** Launches of whole ranks: looked into only when tasks lead nowhere, since that takes longer. */
  private final Stack launches = new Stack();

  HappensBefore(Schedule schedule, SignalTable signals, int epochs) {
    this.schedule = schedule;
    this.signals = signals;
    this.tasks = signals.tasks();
    this.ranks = schedule.topology().size();
    this.visited = new int[epochs + 1][];
  }

  private boolean isPut(int global) {
    int rank = signals.rankOf(global);
    return schedule.rank(rank).kind(global - signals.taskBase(rank)) == TaskKind.PUT;
  }

  /**
   * Whether the write or read of one task in an epoch comes before an access of another task {@code
   * distance} epochs later.
   *
   * @param first the task of the first access
   * @param firstWrites whether it writes: of a put, its destination
   * @param second the task of the second access
   * @param secondPart the part that the second access reads, or {@link Accesses#WRITE}
   * @param distance epochs between them
   */
  boolean holds(int first, boolean firstWrites, int second, int secondPart, int distance) {
    boolean byFlagOnly = firstWrites && isPut(first);
    int firstRank = signals.rankOf(first);
    int owner = firstRank;
    int flag = -1;
    if (byFlagOnly) {
      RankSchedule r = schedule.rank(firstRank);
      int raise = r.firstRaise(first - signals.taskBase(firstRank));
      owner = r.raiseRank(raise);
      flag = signals.copy(owner, r.raiseSignal(raise));
      if (signals.awaitedLag(flag) < 0) {
        return false;
      }
    }
    Goal goal = new Goal(first, byFlagOnly, flag, byFlagOnly ? owner : firstRank);
    search++;
    stack.top = 0;
    launches.top = 0;
    int rank = signals.rankOf(second);
    int task = second - signals.taskBase(rank);
    if (waits(goal, rank, task, secondPart, distance)
        || (distance > 0 && boundary(goal, rank, distance))) {
      return true;
    }
    while (stack.top + launches.top > 0) {
      Stack from = stack.top > 0 ? stack : launches;
      from.top--;
      int node = from.node[from.top];
      int epoch = from.epoch[from.top];
      int of = node < tasks ? signals.rankOf(node) : node - tasks;
      if (from == launches
          ? anyWaits(goal, of, epoch)
          : waits(goal, of, node - signals.taskBase(of), Accesses.WRITE, epoch)) {
        return true;
      }
      if (epoch > 0 && boundary(goal, of, epoch)) {
        return true;
      }
    }
    return false;
  }

  private boolean anyWaits(Goal goal, int rank, int epoch) {
    for (int task = 0; task < schedule.rank(rank).tasks(); task++) {
      if (waits(goal, rank, task, Accesses.WRITE, epoch)) {
        return true;
      }
    }
    return false;
  }

  private record Goal(int task, boolean byFlagOnly, int flag, int rank) {}

  /** Follows the waits of a task in an epoch, counted from the first access. */
  private boolean waits(Goal goal, int rank, int task, int onlyPart, int epoch) {
    RankSchedule r = schedule.rank(rank);
    for (int wait = r.firstWait(task); wait < r.firstWait(task + 1); wait++) {
      if (signal(goal, signals.copy(rank, r.waitSignal(wait)), epoch - r.waitLag(wait))) {
        return true;
      }
    }
    int end = r.firstPart(r.firstStream(task + 1));
    for (int part = r.firstPart(r.firstStream(task)); part < end; part++) {
      if (r.partSignal(part) != RankSchedule.NO_SIGNAL
          && (onlyPart == Accesses.WRITE || onlyPart == part)
          && signal(goal, signals.copy(rank, r.partSignal(part)), epoch - r.partLag(part))) {
        return true;
      }
    }
    return false;
  }

  private boolean signal(Goal goal, int copy, int epoch) {
    if (epoch < 0) {
      return false;
    }
    for (int i = signals.firstRaiser(copy); i < signals.firstRaiser(copy + 1); i++) {
      int raiser = signals.raiser(i);
      if (raiser == goal.task() && epoch == 0 && (!goal.byFlagOnly() || copy == goal.flag())) {
        return true;
      }
      push(raiser, epoch);
    }
    return false;
  }

  /** The launch of a rank in an epoch follows all of its launches before. */
  private boolean boundary(Goal goal, int rank, int epoch) {
    if (rank == goal.rank()) {
      // All tasks of that rank in epoch 0 are over; of a put, those that waited for its flag.
      int lag = goal.byFlagOnly() ? signals.awaitedLag(goal.flag()) : 0;
      if (lag < epoch) {
        return true;
      }
    }
    push(tasks + rank, epoch - 1);
    return false;
  }

  private void push(int node, int epoch) {
    int[] marks = visited[epoch];
    if (marks == null) {
      marks = new int[tasks + ranks];
      visited[epoch] = marks;
    }
    if (marks[node] == search) {
      return;
    }
    marks[node] = search;
    (node < tasks ? stack : launches).push(node, epoch);
  }

  /** Nodes that are still to be looked into. */
  private static final class Stack {
    int[] node = new int[64];
    int[] epoch = new int[64];
    int top;

    void push(int newNode, int ofEpoch) {
      if (top == node.length) {
        node = Arrays.copyOf(node, top * 2);
        epoch = Arrays.copyOf(epoch, top * 2);
      }
      node[top] = newNode;
      epoch[top++] = ofEpoch;
    }
  }
}
