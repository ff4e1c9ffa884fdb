package org.mkernel.api.schedule;

/** What a task does, once its waits are met and before it raises its signals. */
public enum TaskKind {
  /** Runs a kernel on its input streams and writes its outputs. */
  COMPUTE,
  /** Copies one region to a region of another rank, then raises a flag there. */
  PUT,
  /**
   * Adds its inputs, which may differ in type, in fp32 in the order given, and writes the rounded
   * sum once.
   */
  REDUCE,
  /** Only raises signals. */
  NOTIFY
}
