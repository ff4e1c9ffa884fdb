package org.mkernel.kernels.cuda;

import java.util.List;
import org.mkernel.api.Failure;
import org.mkernel.api.UnavailableException;
import org.mkernel.api.spi.Executable;
import org.mkernel.api.spi.ExecutionPlan;

/** Runs the tasks of one rank by one persistent kernel. */
final class CudaExecutable implements Executable {
  CudaExecutable(CudaDevice device, ExecutionPlan plan) {
    throw new UnavailableException(
        "the CUDA executor is not built in yet: %s can't prepare %s"
            .formatted(device.kind(), plan.schedule().name()),
        Failure.remedy("use the device host").withRank(plan.rank()));
  }

  @Override
  public void launch(long stream, long epoch) {}

  @Override
  public long completed() {
    return 0;
  }

  @Override
  public boolean await(long epoch, long nanos) {
    return false;
  }

  @Override
  public List<ExecutionPlan.Stall> stalls() {
    return List.of();
  }

  @Override
  public void close() {}
}
