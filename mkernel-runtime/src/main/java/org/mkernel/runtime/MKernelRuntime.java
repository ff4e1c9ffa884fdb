package org.mkernel.runtime;

import org.mkernel.api.Config;
import org.mkernel.api.MKernel;
import org.mkernel.api.spi.RuntimeProvider;

/** Opens the runtime; found as a service. */
public final class MKernelRuntime implements RuntimeProvider {
  /** For {@link java.util.ServiceLoader}. */
  public MKernelRuntime() {}

  @Override
  public MKernel open(Config config) {
    return new OpenMKernel(config);
  }
}
