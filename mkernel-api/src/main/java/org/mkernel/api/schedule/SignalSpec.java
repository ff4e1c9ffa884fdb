package org.mkernel.api.schedule;

/**
 * Signals that every rank has under the same numbers: {@code first} … {@code first + count − 1}.
 *
 * @param first the number of the first
 * @param count how many
 * @param name what they mean
 * @param kind how they are raised
 * @param scope who must see them
 */
public record SignalSpec(int first, int count, String name, Kind kind, Scope scope) {

  /** How a signal is raised. */
  public enum Kind {
    /** By one task; its value is the epoch. The only kind that crosses a wire. */
    FLAG,
    /** By atomic adds of tasks of one rank; its full value is epoch · adds per epoch. */
    COUNTER
  }

  /** Who must see a raise in order. */
  public enum Scope {
    /** Threads of the same device. */
    DEVICE,
    /** Every device and the host. */
    SYSTEM
  }
}
