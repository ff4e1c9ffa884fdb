package org.mkernel.kernels.cuda;

import org.mkernel.api.schedule.Kernel;
import org.mkernel.api.spi.KernelSet;

/** What the device {@code cublas} computes. */
public final class CublasKernels implements KernelSet {
  /** For {@link java.util.ServiceLoader}. */
  public CublasKernels() {}

  @Override
  public String device() {
    return CublasDevice.KIND;
  }

  @Override
  public boolean supports(String kind) {
    return kind.equals(Kernel.GEMM);
  }
}
