package org.mkernel.check;

/**
 * A task on the critical path.
 *
 * @param epoch its epoch
 * @param rank its rank
 * @param task its number on the rank
 * @param fromNanos when what it waited for last was there, in simulated time
 * @param toNanos when what comes next on the path could go on
 * @param reason what it waited for last: the step before
 */
public record PathStep(
    long epoch, int rank, int task, double fromNanos, double toNanos, Reason reason) {

  static final Reason[] REASONS = Reason.values();

  /** What a task waited for last. */
  public enum Reason {
    /** The start of the launch. */
    LAUNCH("the launch"),
    /** The task before it on its lane, or of its pool. */
    LANE("its lane"),
    /** A signal that the task before it on the path raised. */
    SIGNAL("a signal"),
    /** Its bytes went behind those of the task before it on the path. */
    LINK("the link or the proxy");

    private final String words;

    Reason(String words) {
      this.words = words;
    }

    /**
     * The reason in words.
     *
     * @return a noun
     */
    public String words() {
      return words;
    }
  }
}
