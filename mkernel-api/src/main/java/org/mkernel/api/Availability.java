package org.mkernel.api;

import java.util.Objects;

/** Whether something can be used here. Asked cheaply, answered as a value and never thrown. */
public sealed interface Availability {

  /**
   * It can be used.
   *
   * @param detail what was found, for reports
   */
  record Available(String detail) implements Availability {
    /** Checks that nothing is missing. */
    public Available {
      Objects.requireNonNull(detail, "detail");
    }
  }

  /**
   * It cannot be used.
   *
   * @param reason the root cause, not its last symptom
   * @param remedy what the reader can do
   */
  record Unavailable(String reason, String remedy) implements Availability {
    /** Checks that nothing is missing. */
    public Unavailable {
      Objects.requireNonNull(reason, "reason");
      Objects.requireNonNull(remedy, "remedy");
    }
  }

  /**
   * Whether it can be used.
   *
   * @return true when it can
   */
  default boolean isAvailable() {
    return this instanceof Available;
  }

  /**
   * The answer in one line.
   *
   * @return what was found, or the reason and the remedy
   */
  default String describe() {
    return switch (this) {
      case Available a -> a.detail();
      case Unavailable u -> u.reason() + "; remedy: " + u.remedy();
    };
  }
}
