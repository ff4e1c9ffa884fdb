package org.mkernel.check;

import java.util.ArrayList;
import java.util.List;
import org.mkernel.api.schedule.Schedule;

/** Collects findings up to the number that a report lists. */
final class Findings {
  private final Schedule schedule;
  private final List<Finding> list = new ArrayList<>();

  Findings(Schedule schedule) {
    this.schedule = schedule;
  }

  boolean isFull() {
    return list.size() >= CheckReport.MAX_FINDINGS;
  }

  boolean isEmpty() {
    return list.isEmpty();
  }

  boolean has(Finding.Rule rule) {
    return list.stream().anyMatch(finding -> finding.rule() == rule);
  }

  List<Finding> list() {
    return list;
  }

  void add(Finding.Rule rule, String message, Finding.TaskId... tasks) {
    if (!isFull()) {
      list.add(new Finding(rule, message, List.of(tasks)));
    }
  }

  /** Says something of one task, whose words come first. */
  void of(Finding.Rule rule, int rank, int task, String message) {
    add(rule, schedule.describe(rank, task) + " " + message, new Finding.TaskId(rank, task));
  }
}
