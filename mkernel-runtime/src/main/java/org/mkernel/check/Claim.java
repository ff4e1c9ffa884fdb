package org.mkernel.check;

import java.util.Objects;

/**
 * Something that must hold for a schedule to be right, and how it is known to.
 *
 * @param statement what must hold
 * @param verdict how it is known
 * @param reason why it stands so
 */
public record Claim(String statement, Verdict verdict, String reason) {
  /** Checks that nothing is missing. */
  public Claim {
    Objects.requireNonNull(statement, "statement");
    Objects.requireNonNull(verdict, "verdict");
    Objects.requireNonNull(reason, "reason");
  }

  /** How a claim is known to hold. */
  public enum Verdict {
    /** The checker proved it for every timing and every number of lanes. */
    PROVEN,
    /** The checker found that it does not hold, or could not show that it does. */
    BROKEN,
    /** Not looked at, since it builds on a rule that is broken. */
    UNKNOWN,
    /** Taken for granted: it speaks of what the schedule does not say. */
    ASSUMED,
    /** Compared while the operation is prepared or runs. */
    CHECKED_AT_RUN_TIME
  }
}
