package org.mkernel.kernels.cuda;

import org.mkernel.api.schedule.Kernel;
import org.mkernel.api.spi.KernelSet;

/** What the interpreter computes. */
public final class CudaKernels implements KernelSet {
  /** For {@link java.util.ServiceLoader}. */
  public CudaKernels() {}

  @Override
  public String device() {
    return CudaDevice.KIND;
  }

  @Override
  public boolean supports(String kind) {
    return kind.equals(Kernel.GEMM) || kind.equals(Kernel.COPY);
  }
}
