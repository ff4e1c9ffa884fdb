package org.mkernel.api;

/** A prepared collective of one rank. One launch is in flight at a time. */
public interface Operation extends AutoCloseable {
  /**
   * What was chosen and why.
   *
   * @return the report
   */
  OperationReport report();

  /**
   * Launches on the device's own stream.
   *
   * @return the epoch, to await
   */
  default long launch() {
    return launch(0);
  }

  /**
   * Launches: returns at once and allocates nothing. All ranks launch their operations in the same
   * order; another order is a {@link MismatchException} on all of them.
   *
   * @param stream an opaque address of a stream of the device; 0 is the device's own
   * @return the epoch, from 1; 0 when the stream is being captured: the launch is recorded, and
   *     runs each time the graph is launched. The next epoch counts those runs too
   * @throws UsageException when the launch before is not retired
   * @throws ClosedException when the operation or the world was closed
   * @throws MKernelException the cause, when the world is dead
   */
  long launch(long stream);

  /**
   * Waits for a launch: outputs are complete and operands may be reused.
   *
   * @param epoch what {@link #launch} returned
   * @param timeoutNanos how long to wait, in nanoseconds
   * @throws DeadlineExceededException when it takes longer; the launch goes on
   * @throws MKernelException the cause, when the world died
   */
  void await(long epoch, long timeoutNanos);

  /** Frees what was prepared. During a launch it aborts the world. */
  @Override
  void close();
}
