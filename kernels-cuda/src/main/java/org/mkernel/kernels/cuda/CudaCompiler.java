package org.mkernel.kernels.cuda;

import org.mkernel.api.Availability;

/** Compiles device sources. */
interface CudaCompiler {
  /** Whether it can be used here; asked only when something must be compiled. */
  Availability availability();

  /** Its version, as 13010 for 13.1. */
  int version();

  /**
   * Compiles.
   *
   * @throws org.mkernel.api.DeviceException when the source is wrong; it has what the compiler said
   */
  CubinEntry compile(CudaProgram program);
}
