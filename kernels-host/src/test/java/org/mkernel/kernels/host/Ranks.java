package org.mkernel.kernels.host;

import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ThreadFactory;
import org.mkernel.api.DeviceException;
import org.mkernel.api.schedule.BufferSpec;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.spi.Abort;
import org.mkernel.api.spi.Executable;
import org.mkernel.api.spi.ExecutionPlan;
import org.mkernel.api.spi.KernelSet;

/** Ranks of one process that run a schedule without any runtime: memory, signals, executables. */
final class Ranks implements AutoCloseable {
  private static final long MOST_BYTES = 1L << 30;

  final Schedule schedule;
  final Abort abort = new Abort();
  final Queue<ExecutionPlan.Stall> expired = new ConcurrentLinkedQueue<>();
  final Queue<Failed> failed = new ConcurrentLinkedQueue<>();
  final Queue<Thread> threads = new ConcurrentLinkedQueue<>();
  final long[][] buffers;
  final long[] signals;
  final List<Executable> executables = new ArrayList<>();

  int lanes = 1;
  long waitNanos = 20_000_000_000L;
  List<KernelSet> kernels = List.of(new HostKernels());
  int wiredTask = -1;
  ExecutionPlan.Commands commands = (transfer, epoch) -> false;

  private final Arena arena = Arena.ofShared();

  /** A task that failed. */
  record Failed(int task, Throwable cause) {}

  Ranks(Schedule schedule) {
    this.schedule = schedule;
    int size = schedule.topology().size();
    buffers = new long[size][schedule.buffers().size()];
    signals = new long[size];
    for (int rank = 0; rank < size; rank++) {
      signals[rank] = arena.allocate(8L * schedule.signalCount() + 8, 64).address();
      for (BufferSpec buffer : schedule.buffers()) {
        // Who tests larger ones brings them.
        if (buffer.bytes(rank) < MOST_BYTES) {
          buffers[rank][buffer.index()] =
              arena.allocate(Math.max(1, buffer.bytes(rank) * buffer.depth()), 64).address();
        }
      }
    }
  }

  Ranks prepare() {
    ThreadFactory factory =
        body -> {
          Thread thread = new Thread(body);
          threads.add(thread);
          return thread;
        };
    HostDevice device = new HostDevice(factory);
    for (int rank = 0; rank < buffers.length; rank++) {
      executables.add(device.prepare(new Plan(rank)));
    }
    return this;
  }

  Executable executable(int rank) {
    return executables.get(rank);
  }

  long signal(int rank, int signal) {
    return Memory.acquire(signals[rank] + 8L * signal);
  }

  @Override
  public void close() {
    executables.forEach(Executable::close);
    arena.close();
  }

  private final class Plan implements ExecutionPlan, ExecutionPlan.Observer {
    private final int rank;

    Plan(int rank) {
      this.rank = rank;
    }

    @Override
    public Schedule schedule() {
      return schedule;
    }

    @Override
    public int rank() {
      return rank;
    }

    @Override
    public long buffer(int owner, int buffer) {
      return buffers[owner][buffer];
    }

    @Override
    public long slotBytes(int buffer) {
      return Arrays.stream(schedule.buffers().get(buffer).bytes()).max().orElse(0);
    }

    @Override
    public long signals(int owner) {
      return signals[owner];
    }

    @Override
    public int lanes(int role) {
      return lanes;
    }

    @Override
    public int transfer(int task) {
      return task == wiredTask ? 7 : -1;
    }

    @Override
    public Commands commands() {
      return commands;
    }

    @Override
    public List<KernelSet> kernels() {
      return kernels;
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
      expired.add(stall);
      abort.set(new DeviceException("a wait expired: " + stall));
    }

    @Override
    public void failed(int task, Throwable cause) {
      failed.add(new Failed(task, cause));
      abort.set(new DeviceException("task " + task + " failed: " + cause));
    }

    @Override
    public boolean tracing() {
      return false;
    }

    @Override
    public void ran(int lane, int task, long epoch, long claimed, long ready, long done) {
      throw new AssertionError("told of a task while no trace is taken");
    }
  }
}
