package org.mkernel.api.spi;

import java.util.List;

/** A prepared schedule of one rank. One launch is in flight at a time. */
public interface Executable extends AutoCloseable {
  /**
   * Whether a launch into a stream is recorded into a graph, to run when the graph is launched.
   *
   * @param stream an opaque address; 0 is the device's own
   * @return true while the stream is being captured
   */
  default boolean records(long stream) {
    return false;
  }

  /**
   * Starts an epoch, or records it. Returns at once and allocates nothing.
   *
   * @param stream the stream to run on, an opaque address; 0 is the device's own
   * @param epoch one more than {@link #completed}, 0 when the launch is recorded
   */
  void launch(long stream, long epoch);

  /**
   * The last epoch whose tasks have all run here. Transfers may still be in flight.
   *
   * @return 0 before the first
   */
  long completed();

  /**
   * Waits until an epoch has run or the world is aborted.
   *
   * @param epoch the epoch
   * @param nanos how long to wait
   * @return whether it has run
   */
  boolean await(long epoch, long nanos);

  /**
   * What lanes wait for now.
   *
   * @return the waits that are not met
   */
  List<ExecutionPlan.Stall> stalls();

  /** Frees what {@code prepare} took. The world is idle or aborted; lanes leave within a second. */
  @Override
  void close();
}
