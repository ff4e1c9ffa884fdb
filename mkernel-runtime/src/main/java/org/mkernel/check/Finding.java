package org.mkernel.check;

import java.util.List;

/**
 * Something wrong with a schedule.
 *
 * @param rule the rule that is broken
 * @param message what is wrong, naming the tasks
 * @param tasks the tasks, where the rule speaks of tasks
 */
public record Finding(Rule rule, String message, List<TaskId> tasks) {
  /** Copies the list. */
  public Finding {
    tasks = List.copyOf(tasks);
  }

  /**
   * A task.
   *
   * @param rank its rank
   * @param task its number
   */
  public record TaskId(int rank, int task) {}

  /** What is checked. */
  public enum Rule {
    /**
     * Indices in range, regions inside their buffers and aligned, tasks that touch what they may.
     */
    STRUCTURE,
    /** Every pool is drained by exactly one role. */
    LANES,
    /** Flags have one raiser, counters raisers of one rank, and waits want what is raised. */
    SIGNALS,
    /** No task waits, by way of others, for itself. */
    DEADLOCK,
    /** Conflicting accesses are ordered, also between epochs. */
    RACES,
    /** Each byte of an output is written once, and is there when the launch ends. */
    COVERAGE
  }
}
