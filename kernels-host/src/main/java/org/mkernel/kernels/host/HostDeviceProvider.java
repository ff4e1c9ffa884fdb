package org.mkernel.kernels.host;

import java.util.concurrent.ThreadFactory;
import org.mkernel.api.Availability;
import org.mkernel.api.spi.Device;
import org.mkernel.api.spi.DeviceProvider;

/** The host as a device. */
public final class HostDeviceProvider implements DeviceProvider {
  /** For {@link java.util.ServiceLoader}. */
  public HostDeviceProvider() {}

  @Override
  public String name() {
    return HostDevice.KIND;
  }

  @Override
  public int preference() {
    return 0;
  }

  @Override
  public Availability availability() {
    return switch (OpenBlas.availability()) {
      case Availability.Available blas ->
          new Availability.Available(
              Runtime.getRuntime().availableProcessors() + " processors, " + blas.detail());
      case Availability.Unavailable missing -> missing;
    };
  }

  @Override
  public Device open(int localIndex, ThreadFactory threads) {
    return new HostDevice(threads);
  }
}
