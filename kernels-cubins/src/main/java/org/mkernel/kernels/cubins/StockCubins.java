package org.mkernel.kernels.cubins;

import java.io.InputStream;
import java.util.Optional;
import org.mkernel.api.spi.KernelBinaries;

/** Hands the entries out. */
public final class StockCubins implements KernelBinaries {
  /** For {@link java.util.ServiceLoader}. */
  public StockCubins() {}

  @Override
  public String device() {
    return "cuda";
  }

  @Override
  public Optional<InputStream> open(String digest) {
    return Optional.ofNullable(StockCubins.class.getResourceAsStream("entries-sm_90a/" + digest));
  }
}
