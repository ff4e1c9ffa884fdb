package org.mkernel.api.spi;

import java.util.concurrent.ThreadFactory;
import org.mkernel.api.Availability;

/** A kind of device that runs schedules. */
public interface DeviceProvider {
  /**
   * Its kind.
   *
   * @return {@code host}, {@code cuda}, …
   */
  String name();

  /**
   * How good it is, to choose between available ones: higher is preferred.
   *
   * @return 0 for the host
   */
  int preference();

  /**
   * Whether there is such a device on this machine.
   *
   * @return the answer, with the root cause when there is none
   */
  Availability availability();

  /**
   * Opens the device for one rank.
   *
   * @param localIndex the rank's index on its node
   * @param threads makes the threads that the device needs
   * @return the device
   */
  Device open(int localIndex, ThreadFactory threads);
}
