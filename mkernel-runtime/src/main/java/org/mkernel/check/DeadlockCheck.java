package org.mkernel.check;

import java.util.ArrayList;
import java.util.List;
import org.mkernel.api.schedule.RankSchedule;
import org.mkernel.api.schedule.Role;
import org.mkernel.api.schedule.Schedule;

/**
 * Looks for tasks that wait for themselves: signal edges, the order of claims in a pool, and the
 * order of pools in a role must be acyclic over all ranks. Nodes are tasks, then copies of signals.
 */
final class DeadlockCheck {
  /** A longer cycle is not told to its end. */
  private static final int MAX_NAMED = 12;

  private final Schedule schedule;
  private final SignalTable signals;
  private final int tasks;
  private final int nodes;

  /** By task: the task that is claimed before it by the same lanes, or −1. */
  private final int[] before;

  DeadlockCheck(Schedule schedule, SignalTable signals) {
    this.schedule = schedule;
    this.signals = signals;
    this.tasks = signals.tasks();
    this.nodes = tasks + signals.copies();
    this.before = new int[tasks];
    for (int rank = 0; rank < schedule.topology().size(); rank++) {
      claims(schedule.rank(rank), signals.taskBase(rank));
    }
  }

  private void claims(RankSchedule rank, int base) {
    java.util.Arrays.fill(before, base, base + rank.tasks(), -1);
    for (int pool = 0; pool < rank.pools(); pool++) {
      for (int task = rank.poolFirst(pool) + 1; task < rank.poolFirst(pool + 1); task++) {
        before[base + task] = base + task - 1;
      }
    }
    for (Role role : rank.roles()) {
      int last = -1;
      for (int pool : role.pools()) {
        int first = rank.poolFirst(pool);
        int end = rank.poolFirst(pool + 1);
        if (first < end) {
          if (last >= 0 && !role.readyFirst()) {
            before[base + first] = last;
          }
          last = base + end - 1;
        }
      }
    }
  }

  /**
   * Looks for a cycle.
   *
   * @return the place of each task in a topological order, of no meaning after a finding
   */
  int[] run(Findings findings) {
    int[] degree = new int[nodes];
    int[] first = new int[nodes + 1];
    forEachEdge((from, to) -> first[from + 1]++);
    for (int node = 0; node < nodes; node++) {
      first[node + 1] += first[node];
    }
    int[] target = new int[first[nodes]];
    int[] next = java.util.Arrays.copyOf(first, nodes);
    forEachEdge((from, to) -> {
      target[next[from]++] = to;
      degree[to]++;
    });
    int[] queue = new int[nodes];
    int filled = 0;
    for (int node = 0; node < nodes; node++) {
      if (degree[node] == 0) {
        queue[filled++] = node;
      }
    }
    for (int at = 0; at < filled; at++) {
      for (int edge = first[queue[at]]; edge < first[queue[at] + 1]; edge++) {
        if (--degree[target[edge]] == 0) {
          queue[filled++] = target[edge];
        }
      }
    }
    if (filled < nodes) {
      report(findings, degree, first, target);
    }
    int[] position = new int[tasks];
    for (int at = 0; at < filled; at++) {
      if (queue[at] < tasks) {
        position[queue[at]] = at;
      }
    }
    return position;
  }

  private interface Edge {
    void accept(int from, int to);
  }

  private void forEachEdge(Edge edge) {
    for (int copy = 0; copy < signals.copies(); copy++) {
      for (int r = signals.firstRaiser(copy); r < signals.firstRaiser(copy + 1); r++) {
        edge.accept(signals.raiser(r), tasks + copy);
      }
    }
    for (int rank = 0; rank < schedule.topology().size(); rank++) {
      RankSchedule r = schedule.rank(rank);
      int base = signals.taskBase(rank);
      for (int task = 0; task < r.tasks(); task++) {
        if (before[base + task] >= 0) {
          edge.accept(before[base + task], base + task);
        }
        for (int wait = r.firstWait(task); wait < r.firstWait(task + 1); wait++) {
          if (r.waitLag(wait) == 0) {
            edge.accept(tasks + signals.copy(rank, r.waitSignal(wait)), base + task);
          }
        }
        int end = r.firstPart(r.firstStream(task + 1));
        for (int part = r.firstPart(r.firstStream(task)); part < end; part++) {
          if (r.partSignal(part) != RankSchedule.NO_SIGNAL && r.partLag(part) == 0) {
            edge.accept(tasks + signals.copy(rank, r.partSignal(part)), base + task);
          }
        }
      }
    }
  }

  /** Every node that is left lies on a cycle or behind one: walking back must close a cycle. */
  private void report(Findings findings, int[] degree, int[] first, int[] target) {
    int[] back = new int[nodes];
    java.util.Arrays.fill(back, -1);
    int start = -1;
    for (int node = 0; node < nodes; node++) {
      if (degree[node] > 0) {
        start = node;
        for (int edge = first[node]; edge < first[node + 1]; edge++) {
          if (degree[target[edge]] > 0) {
            back[target[edge]] = node;
          }
        }
      }
    }
    boolean[] seen = new boolean[nodes];
    int node = start;
    while (!seen[node]) {
      seen[node] = true;
      node = back[node];
    }
    findings.add(Finding.Rule.DEADLOCK, words(back, node), cycle(back, node));
  }

  private Finding.TaskId[] cycle(int[] back, int start) {
    List<Finding.TaskId> cycle = new ArrayList<>();
    int at = start;
    do {
      if (at < tasks) {
        cycle.add(signals.id(at));
      }
      at = back[at];
    } while (at != start);
    return cycle.toArray(Finding.TaskId[]::new);
  }

  /** The cycle in words, where of tasks that only follow each other the ends are named. */
  private String words(int[] back, int start) {
    int at = start;
    // Begin at a task that waits for a signal: the order of claims alone makes no cycle in a pool.
    for (int i = 0; i < nodes && (at >= tasks || back[at] < tasks); i++) {
      at = back[at];
    }
    int first = at;
    StringBuilder text = new StringBuilder(at < tasks ? signals.describe(at) : "a signal");
    int named = 1;
    do {
      boolean waits = back[at] >= tasks;
      int next = waits ? back[back[at]] : back[at];
      while (!waits && next < tasks && back[next] < tasks && next != first) {
        next = back[next];
      }
      if (++named > MAX_NAMED) {
        return text.append(waits ? " waits for" : " is claimed after").append(" others").toString();
      }
      text.append(waits ? " waits for " : ", which is claimed after ");
      text.append(next == first ? "the first" : signals.describe(next));
      at = next;
    } while (at != first);
    return text.toString();
  }
}
