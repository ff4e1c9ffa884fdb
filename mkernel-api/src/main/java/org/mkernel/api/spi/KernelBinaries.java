package org.mkernel.api.spi;

import java.io.InputStream;
import java.util.Optional;

/** Machine code that a module ships, so that nothing is compiled where it fits. */
public interface KernelBinaries {
  /**
   * The kind of device.
   *
   * @return {@code cuda}, …
   */
  String device();

  /**
   * An entry.
   *
   * @param digest what the device keeps it by: SHA-256 of sources, options, architecture and
   *     compiler, in hexadecimal digits
   * @return its bytes, to be closed by the caller; empty when it is not here
   */
  Optional<InputStream> open(String digest);
}
