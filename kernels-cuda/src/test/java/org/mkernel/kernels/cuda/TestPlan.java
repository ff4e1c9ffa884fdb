package org.mkernel.kernels.cuda;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.LongUnaryOperator;
import org.mkernel.api.DeviceException;
import org.mkernel.api.Failure;
import org.mkernel.api.schedule.BufferSpec;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.spi.Abort;
import org.mkernel.api.spi.ExecutionPlan;
import org.mkernel.api.spi.KernelSet;

/** What an executor is given, for a world of one rank: buffers by number, and signals. */
final class TestPlan implements ExecutionPlan, ExecutionPlan.Observer {
  final List<Stall> stalls = new ArrayList<>();
  final List<String> failures = new ArrayList<>();
  private final Schedule schedule;
  private final long[] buffers;
  private final long signals;
  private final int lanes;
  private final long waitNanos;
  private final Abort abort = new Abort();

  /** Buffers of up to {@code depth} slots, each of the size that the schedule says. */
  TestPlan(Schedule schedule, LongUnaryOperator allocate, int lanes, long waitMillis) {
    this.schedule = schedule;
    this.lanes = lanes;
    this.waitNanos = TimeUnit.MILLISECONDS.toNanos(waitMillis);
    this.buffers = new long[schedule.buffers().size()];
    for (BufferSpec buffer : schedule.buffers()) {
      buffers[buffer.index()] = allocate.applyAsLong(slotBytes(buffer.index()) * buffer.depth());
    }
    this.signals = allocate.applyAsLong(8L * schedule.signalCount());
  }

  @Override
  public Schedule schedule() {
    return schedule;
  }

  @Override
  public int rank() {
    return 0;
  }

  @Override
  public long buffer(int owner, int buffer) {
    return buffers[buffer];
  }

  @Override
  public long slotBytes(int buffer) {
    return (schedule.buffers().get(buffer).bytes(0) + 255) / 256 * 256;
  }

  @Override
  public long signals(int owner) {
    return signals;
  }

  @Override
  public int lanes(int role) {
    return lanes;
  }

  @Override
  public int transfer(int task) {
    return -1;
  }

  @Override
  public Commands commands() {
    return (transfer, epoch) -> false;
  }

  @Override
  public List<KernelSet> kernels() {
    return List.of(new CudaKernels());
  }

  @Override
  public long waitNanos() {
    return waitNanos;
  }

  @Override
  public Abort abort() {
    return abort;
  }

  @Override
  public Observer observer() {
    return this;
  }

  @Override
  public void expired(Stall stall) {
    stalls.add(stall);
    boolean _ = abort.set(new DeviceException("a wait expired", Failure.UNKNOWN));
  }

  @Override
  public void failed(int task, Throwable cause) {
    failures.add(cause.toString());
    boolean _ = abort.set(new DeviceException("a task failed", Failure.UNKNOWN));
  }

  @Override
  public boolean tracing() {
    return false;
  }

  @Override
  public void ran(int lane, int task, long epoch, long claimed, long ready, long done) {}
}
