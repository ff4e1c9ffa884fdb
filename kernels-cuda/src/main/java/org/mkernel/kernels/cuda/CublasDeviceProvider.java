package org.mkernel.kernels.cuda;

import java.util.concurrent.ThreadFactory;
import org.mkernel.api.Availability;
import org.mkernel.api.Failure;
import org.mkernel.api.UnavailableException;
import org.mkernel.api.spi.Device;
import org.mkernel.api.spi.DeviceProvider;

/**
 * A GPU on which cuBLAS computes: what the interpreter is compared with. It runs products of one
 * rank and nothing else, and is never chosen unless asked for.
 */
public final class CublasDeviceProvider implements DeviceProvider {
  private final CudaDeviceProvider cuda = new CudaDeviceProvider();

  /** For {@link java.util.ServiceLoader}. */
  public CublasDeviceProvider() {}

  @Override
  public String name() {
    return CublasDevice.KIND;
  }

  /** Below all others: a selection that asks for nothing ends before. */
  @Override
  public int preference() {
    return -2;
  }

  @Override
  public Availability availability() {
    return cuda.availability().isAvailable() ? Cublas.availability() : cuda.availability();
  }

  @Override
  public Device open(int localIndex, ThreadFactory threads) {
    if (availability() instanceof Availability.Unavailable missing) {
      throw new UnavailableException(
          "cuBLAS can't be used: " + missing.reason(), Failure.remedy(missing.remedy()));
    }
    return new CublasDevice((CudaDevice) cuda.open(localIndex, threads));
  }
}
