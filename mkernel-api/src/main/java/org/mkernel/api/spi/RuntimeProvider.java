package org.mkernel.api.spi;

import org.mkernel.api.Config;
import org.mkernel.api.MKernel;

/** How {@link MKernel#open} finds the runtime. Not for plug-ins. */
public interface RuntimeProvider {
  /**
   * Opens the runtime.
   *
   * @param config settings
   * @return a new instance
   */
  MKernel open(Config config);
}
