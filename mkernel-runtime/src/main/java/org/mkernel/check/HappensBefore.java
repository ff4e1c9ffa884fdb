package org.mkernel.check;

import java.util.Arrays;
import org.mkernel.api.schedule.RankSchedule;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.schedule.TaskKind;

/**
 * Whether one access happens before another, over epochs. Edges lead from a task that raises to one
 * that waits, and from all tasks of a rank's launch to its next launch. What a put writes is
 * ordered only by its own flag, at its destination. The order of claims orders nothing.
 *
 * <p>A question is a search backwards from the second access. Epochs are counted from the first.
 * Most searches end at a wait of the second access itself; in the epoch of the first access, tasks
 * that stand before it in a topological order of the signals are not looked into.
 */
final class HappensBefore {
  /** Tasks looked into, over all searches, after which the answer is that nothing was shown. */
  private static final long MAX_STEPS = 400_000_000L;

  private static final int NOTHING = -1;

  /** Instead of a lag: no task awaits the flag of the put, so its write comes before nothing. */
  private static final int NEVER = Integer.MAX_VALUE;

  private final Schedule schedule;
  private final SignalTable signals;
  private final int[] position;
  private final int tasks;
  private final int ranks;

  /** Marks of a search, by node and epoch; a search has a number of its own. */
  private final int[][] visited;

  /** Likewise for signals, each under the index of its first raiser. */
  private final int[][] visitedSignal;

  /** By rank, once needed: what tasks of the rank wait for, as signal and lag, without repeats. */
  private final long[][] waitsOfRank;

  private int search;
  private long steps;
  private final Stack stack = new Stack();

  /** Launches of whole ranks: looked into only when tasks lead nowhere, since that takes longer. */
  private final Stack launches = new Stack();

  // What the search looks for: a task or, with NOTHING, the whole launch of a rank.
  private int goalTask = NOTHING;
  private boolean goalByFlag;
  private int goalFlag;
  private int goalRank;
  private int goalLag;
  private boolean goalFailed;

  /**
   * Makes one.
   *
   * @param position of each task in a topological order
   * @param epochs the longest distance that will be asked for
   */
  HappensBefore(Schedule schedule, SignalTable signals, int[] position, int epochs) {
    this.schedule = schedule;
    this.signals = signals;
    this.position = position;
    this.tasks = signals.tasks();
    this.ranks = schedule.topology().size();
    this.visited = new int[epochs + 1][];
    this.visitedSignal = new int[epochs + 1][];
    this.waitsOfRank = new long[ranks][];
  }

  /** Whether searches were cut short: then what did not hold is only not proven. */
  boolean isExhausted() {
    return steps > MAX_STEPS;
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
    if (distance == 0 && position[second] <= position[first]) {
      return false;
    }
    boolean byFlag = firstWrites && signals.kind(first) == TaskKind.PUT;
    if (first != goalTask || byFlag != goalByFlag || !goalFailed) {
      aimAt(first, byFlag);
    }
    return search(second, secondPart, distance);
  }

  /** Whether the whole launch of a rank comes before a task {@code distance} epochs later. */
  boolean launchBefore(int rank, int second, int distance) {
    goalTask = NOTHING;
    goalByFlag = false;
    goalRank = rank;
    goalLag = 0;
    search++;
    return search(second, Accesses.WRITE, distance);
  }

  private void aimAt(int first, boolean byFlag) {
    goalTask = first;
    goalByFlag = byFlag;
    goalRank = signals.rankOf(first);
    goalLag = 0;
    if (byFlag) {
      goalFlag = signals.arrival(first);
      goalRank = signals.ownerOf(goalFlag);
      // The launch of the owner follows the write only if one of its tasks awaits the flag.
      int lag = signals.awaitedLag(goalFlag);
      goalLag = lag < 0 ? NEVER : lag;
    }
    // Marks of a search that failed stay true for the same goal; all others are void.
    search++;
  }

  private boolean search(int second, int secondPart, int distance) {
    stack.top = 0;
    launches.top = 0;
    goalFailed = false;
    if (goalLag == NEVER) {
      return false;
    }
    int rank = signals.rankOf(second);
    if (reached(rank, distance)
        || waits(rank, second - signals.taskBase(rank), secondPart, distance)) {
      return true;
    }
    boundary(rank, distance);
    while (stack.top + launches.top > 0) {
      if (++steps > MAX_STEPS) {
        return false;
      }
      Stack from = stack.top > 0 ? stack : launches;
      from.top--;
      int node = from.node[from.top];
      int epoch = from.epoch[from.top];
      int of = node < tasks ? signals.rankOf(node) : node - tasks;
      if (from == launches
          ? waitsOfLaunch(of, epoch)
          : waits(of, node - signals.taskBase(of), Accesses.WRITE, epoch)) {
        return true;
      }
      boundary(of, epoch);
    }
    goalFailed = true;
    return false;
  }

  /** Whether all that a rank does in an epoch follows the goal, since a launch ended between. */
  private boolean reached(int rank, int epoch) {
    return epoch > 0 && rank == goalRank && goalLag < epoch;
  }

  /** Follows the waits of a task. */
  private boolean waits(int rank, int task, int onlyPart, int epoch) {
    RankSchedule r = schedule.rank(rank);
    for (int wait = r.firstWait(task); wait < r.firstWait(task + 1); wait++) {
      if (signal(signals.copy(rank, r.waitSignal(wait)), epoch - r.waitLag(wait))) {
        return true;
      }
    }
    int end = r.firstPart(r.firstStream(task + 1));
    for (int part = r.firstPart(r.firstStream(task)); part < end; part++) {
      if (r.partSignal(part) != RankSchedule.NO_SIGNAL
          && (onlyPart == Accesses.WRITE || onlyPart == part)
          && signal(signals.copy(rank, r.partSignal(part)), epoch - r.partLag(part))) {
        return true;
      }
    }
    return false;
  }

  private boolean waitsOfLaunch(int rank, int epoch) {
    long[] waits = waitsOfRank[rank];
    if (waits == null) {
      waits = signals.waitsOf(rank);
      waitsOfRank[rank] = waits;
    }
    steps += waits.length;
    for (long wait : waits) {
      if (signal((int) (wait >>> 32), epoch - (int) wait)) {
        return true;
      }
    }
    return false;
  }

  /** Follows a wait for what was raised in an epoch. */
  private boolean signal(int copy, int epoch) {
    if (epoch < 0) {
      return false;
    }
    // A flag of a later epoch says the same of the put before: the path between is one.
    if (goalByFlag ? copy == goalFlag : epoch == 0 && raisedByGoal(copy)) {
      return true;
    }
    int first = signals.firstRaiser(copy);
    int end = signals.firstRaiser(copy + 1);
    if (end - first > 1) {
      int[] marks = visitedSignal[epoch];
      if (marks == null) {
        marks = new int[signals.raises()];
        visitedSignal[epoch] = marks;
      }
      if (marks[first] == search) {
        return false;
      }
      marks[first] = search;
    }
    for (int i = first; i < end; i++) {
      int raiser = signals.raiser(i);
      if (reached(signals.rankOf(raiser), epoch)) {
        return true;
      }
      // Without a launch between, only what stands behind the goal can follow it.
      if (epoch > 0 || (goalTask != NOTHING && position[raiser] > position[goalTask])) {
        push(raiser, epoch);
      }
    }
    return false;
  }

  private boolean raisedByGoal(int copy) {
    if (goalTask == NOTHING) {
      return false;
    }
    int rank = signals.rankOf(goalTask);
    RankSchedule r = schedule.rank(rank);
    int task = goalTask - signals.taskBase(rank);
    for (int raise = r.firstRaise(task); raise < r.firstRaise(task + 1); raise++) {
      if (signals.copy(r.raiseRank(raise), r.raiseSignal(raise)) == copy) {
        return true;
      }
    }
    return false;
  }

  /** The launch of a rank in an epoch follows all of its launches before. */
  private void boundary(int rank, int epoch) {
    if (epoch > 0) {
      push(tasks + rank, epoch - 1);
    }
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
