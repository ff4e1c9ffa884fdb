package org.mkernel.api;

/**
 * Measures time on a device, between two points of a stream: what the host does meanwhile does not
 * count. Used by one thread at a time, of the rank that it is of.
 */
public interface Stopwatch extends AutoCloseable {
  /**
   * Puts the first point behind what is in a stream now. Returns at once.
   *
   * @param stream an opaque address; 0 is the device's own
   */
  void start(long stream);

  /**
   * Puts the second point behind what is in a stream now. Returns at once.
   *
   * @param stream an opaque address; 0 is the device's own
   */
  void stop(long stream);

  /**
   * The time between the two points; waits until the second has come to pass.
   *
   * @return nanoseconds
   * @throws DeviceException when the device fails
   */
  long nanos();

  @Override
  void close();
}
