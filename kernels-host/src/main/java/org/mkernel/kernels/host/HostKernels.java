package org.mkernel.kernels.host;

import org.mkernel.api.Activation;
import org.mkernel.api.UsageException;
import org.mkernel.api.schedule.Kernel;
import org.mkernel.api.spi.HostKernelSet;

/** The kernels of the host: products by OpenBLAS, sums and copies. */
public final class HostKernels implements HostKernelSet {
  /** For {@link java.util.ServiceLoader}. */
  public HostKernels() {}

  @Override
  public boolean supports(String kind) {
    return kind.equals(Kernel.GEMM) || kind.equals(Kernel.REDUCE) || kind.equals(Kernel.COPY);
  }

  @Override
  public HostKernel kernel(Kernel kernel) {
    return switch (kernel.kind()) {
      case Kernel.GEMM ->
          new HostGemm(
              flag(kernel, Kernel.TRANSPOSE_B), flag(kernel, Kernel.BIAS), activation(kernel));
      case Kernel.REDUCE -> new HostReduce(flag(kernel, Kernel.BIAS), activation(kernel));
      case Kernel.COPY -> HostKernels::copy;
      default -> throw new UsageException("the host has no kernel " + kernel);
    };
  }

  private static Activation activation(Kernel kernel) {
    return Activation.of(kernel.attribute(Kernel.ACTIVATION, Activation.NONE.label()));
  }

  private static boolean flag(Kernel kernel, String name) {
    String value = kernel.attribute(name, "false");
    if (!value.equals("true") && !value.equals("false")) {
      throw new UsageException(
          "attribute %s of %s is \"%s\"; allowed are true and false"
              .formatted(name, kernel.kind(), value));
    }
    return value.equals("true");
  }

  private static void copy(HostTask task) {
    task.select(0, 0);
    long from = task.address();
    long fromPitch = task.pitch();
    task.selectOutput(0);
    Memory.copyRows(from, fromPitch, task.address(), task.pitch(), task.rows(), task.rowBytes());
  }
}
