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

  void run(Findings findings) {
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
    List<Finding.TaskId> cycle = new ArrayList<>();
    StringBuilder text = new StringBuilder();
    int at = node;
    do {
      if (at < tasks) {
        cycle.add(signals.id(at));
        if (cycle.size() <= 8) {
          text.append(text.isEmpty() ? "" : " waits for ").append(signals.describe(at));
        }
      }
      at = back[at];
    } while (at != node);
    findings.add(
        Finding.Rule.DEADLOCK,
        text + (cycle.size() > 8 ? " waits for … waits for the first" : " waits for the first"),
        cycle.toArray(Finding.TaskId[]::new));
  }
}
