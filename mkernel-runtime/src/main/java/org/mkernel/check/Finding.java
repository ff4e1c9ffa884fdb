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

  /** What is checked, each rule on the ground of those before it. */
  public enum Rule {
    /** What tasks name and touch. */
    STRUCTURE(
        "indices are in range, regions inside their buffers and aligned, and tasks touch what they"
            + " may"),
    /** Pools and roles. */
    LANES("every pool is drained by exactly one role"),
    /** Raises and waits. */
    SIGNALS("flags have one raiser, counters raisers of one rank, and waits want what is raised"),
    /** Cycles. */
    DEADLOCK("no task waits, by way of others, for itself"),
    /** Order of accesses. */
    RACES("conflicting accesses are ordered, also between epochs"),
    /** Bytes that are read. */
    SUPPLY("every byte of the operation's memory that is read was written before in its launch"),
    /** Bytes of outputs. */
    COVERAGE("each byte of an output is written once, and is there when the launch ends");

    private final String statement;

    Rule(String statement) {
      this.statement = statement;
    }

    /**
     * The rule in words.
     *
     * @return what must hold
     */
    public String statement() {
      return statement;
    }
  }
}
