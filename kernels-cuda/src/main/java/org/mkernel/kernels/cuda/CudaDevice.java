package org.mkernel.kernels.cuda;

import org.bytedeco.cuda.global.cudart;
import org.mkernel.api.UsageException;
import org.mkernel.api.schedule.RankSchedule;
import org.mkernel.api.spi.Device;
import org.mkernel.api.spi.Executable;
import org.mkernel.api.spi.ExecutionPlan;

/** A GPU as one rank uses it: the primary context, memory, and a stream of its own. */
final class CudaDevice implements Device {
  static final String KIND = "cuda";

  private final CudaContext context;
  private final CudaStream stream;
  private final int multiprocessors;

  CudaDevice(int ordinal) {
    this.context = CudaContext.retain(ordinal);
    boolean open = false;
    try {
      this.stream = new CudaStream(context);
      this.multiprocessors = context.attribute(cudart.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
      open = true;
    } finally {
      if (!open) {
        context.close();
      }
    }
  }

  CudaContext context() {
    return context;
  }

  /** The stream of launches that name none, and of allocations. */
  CudaStream stream() {
    return stream;
  }

  int multiprocessors() {
    return multiprocessors;
  }

  @Override
  public String kind() {
    return KIND;
  }

  @Override
  public Memory allocate(long bytes, long alignment) {
    requireSize(bytes, alignment);
    return CudaMemory.allocate(context, stream, bytes, alignment);
  }

  private static void requireSize(long bytes, long alignment) {
    if (bytes < 0 || Long.bitCount(alignment) != 1 || alignment < 0) {
      throw new UsageException(
          "%d bytes aligned to %d are asked for; at least 0 and a power of two are needed"
              .formatted(bytes, alignment));
    }
  }

  @Override
  public boolean hostAccessible() {
    return false;
  }

  @Override
  public int defaultLanes(RankSchedule plan, int role) {
    return Math.max(1, multiprocessors / plan.roles().size());
  }

  @Override
  public Executable prepare(ExecutionPlan plan) {
    return new CudaExecutable(this, plan);
  }

  @Override
  public void close() {
    stream.close();
    context.close();
  }
}
