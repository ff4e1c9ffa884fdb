package org.mkernel.kernels.cuda;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.bytedeco.cuda.global.cudart;
import org.mkernel.api.Activation;
import org.mkernel.api.DType;
import org.mkernel.api.DeviceException;
import org.mkernel.api.Failure;
import org.mkernel.api.UsageException;
import org.mkernel.api.schedule.Kernel;
import org.mkernel.api.schedule.RankSchedule;
import org.mkernel.api.schedule.TaskKind;
import org.mkernel.api.spi.Device;
import org.mkernel.api.spi.Executable;
import org.mkernel.api.spi.ExecutionPlan;

/** Runs the products of one rank in the order of its pools, each by one call of cuBLAS. */
final class CublasExecutable implements Executable {
  private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();
  private static final int SPINS = 2000;
  private static final long PARK_NANOS = TimeUnit.MICROSECONDS.toNanos(20);

  private final CudaDevice device;
  private final ExecutionPlan plan;
  private final RankSchedule tasks;
  private final Cublas blas;
  private final Device.Pinned progress;
  private final MemorySegment word;
  private final StreamHandle stream = new StreamHandle();
  private final List<Cublas.Product> products = new ArrayList<>();
  private long launched;

  CublasExecutable(CudaDevice device, Cublas blas, ExecutionPlan plan) {
    this.device = device;
    this.blas = blas;
    this.plan = plan;
    this.tasks = plan.schedule().rank(plan.rank());
    for (int task = 0; task < tasks.tasks(); task++) {
      products.add(product(task));
    }
    this.progress = device.pinned(Long.BYTES, Long.BYTES);
    this.word = HostMemory.segment(progress.hostAddress(), Long.BYTES);
  }

  private Cublas.Product product(int task) {
    require(plan.schedule().topology().size() == 1, task, "worlds of one rank");
    require(tasks.kind(task) == TaskKind.COMPUTE, task, "products");
    Kernel kernel = plan.schedule().kernels().get(tasks.kernel(task));
    require(kernel.kind().equals(Kernel.GEMM), task, "products");
    require(
        kernel.attribute(Kernel.BIAS, "false").equals("false")
            && kernel
                .attribute(Kernel.ACTIVATION, Activation.NONE.label())
                .equals(Activation.NONE.label()),
        task,
        "products without an epilogue");
    int first = tasks.firstStream(task);
    require(
        tasks.firstPart(first + 1) - tasks.firstPart(first) == 1
            && tasks.firstOutput(task + 1) - tasks.firstOutput(task) == 1,
        task,
        "products of one part into one region");
    int a = tasks.partRegion(tasks.firstPart(first));
    int b = tasks.partRegion(tasks.firstPart(first + 1));
    int c = tasks.output(tasks.firstOutput(task));
    DType dtype = plan.schedule().buffers().get(tasks.regionBuffer(c)).dtype();
    return new Cublas.Product(
        dtype,
        kernel.attribute(Kernel.TRANSPOSE_B, "false").equals("true"),
        Math.toIntExact(tasks.regionRows(c)),
        Math.toIntExact(tasks.regionRowBytes(c) / dtype.bytes()),
        Math.toIntExact(tasks.regionRowBytes(a) / dtype.bytes()),
        address(a),
        stride(a, dtype),
        address(b),
        stride(b, dtype),
        address(c),
        stride(c, dtype));
  }

  private void require(boolean met, int task, String what) {
    if (!met) {
      throw new UsageException(
          "the device cublas runs only %s; %s has %s"
              .formatted(what, plan.schedule().name(), plan.schedule().describe(plan.rank(), task)),
          Failure.remedy("use the device cuda")
              .withRank(plan.rank())
              .withOperation(plan.schedule().name()));
    }
  }

  private Address address(int region) {
    return new Address(
        plan.buffer(tasks.regionRank(region), tasks.regionBuffer(region))
            + tasks.regionOffset(region));
  }

  private int stride(int region, DType dtype) {
    return Math.toIntExact(tasks.regionPitch(region) / dtype.bytes());
  }

  @Override
  public void launch(long streamAddress, long epoch) {
    long address = streamAddress == 0 ? device.stream().address() : streamAddress;
    launched = epoch;
    blas.useStream(address);
    for (int i = 0; i < products.size(); i++) {
      blas.multiply(products.get(i));
    }
    try (CudaContext.Scope _ = device.context().enter()) {
      Driver.check(
          cudart.cuStreamWriteValue64(
              stream.at(address), progress.address(), epoch, cudart.CU_STREAM_WRITE_VALUE_DEFAULT),
          "cuStreamWriteValue64");
    }
  }

  @Override
  public long completed() {
    return (long) LONG.getAcquire(word, 0L);
  }

  @Override
  public boolean await(long epoch, long nanos) {
    long deadline = System.nanoTime() + nanos;
    for (int spins = 0; completed() < epoch; spins++) {
      if (spins < SPINS) {
        Thread.onSpinWait();
        continue;
      }
      if (plan.abort().isSet() || System.nanoTime() - deadline > 0 || !isDriverWell()) {
        return completed() >= epoch;
      }
      LockSupport.parkNanos(this, PARK_NANOS);
    }
    return true;
  }

  private boolean isDriverWell() {
    try {
      boolean _ = device.stream().isIdle();
      return true;
    } catch (DeviceException e) {
      plan.observer().failed(0, e);
      return false;
    }
  }

  @Override
  public List<ExecutionPlan.Stall> stalls() {
    return List.of();
  }

  @Override
  public void close() {
    try (progress) {
      if (completed() < launched) {
        device.stream().synchronize();
      }
    }
  }
}
