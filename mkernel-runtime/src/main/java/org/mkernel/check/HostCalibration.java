package org.mkernel.check;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.concurrent.CountDownLatch;
import org.mkernel.api.DType;
import org.mkernel.api.UnavailableException;
import org.mkernel.api.schedule.Kernel;
import org.mkernel.api.schedule.RankSchedule;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.spi.HostKernelSet;
import org.mkernel.api.spi.KernelSet;

/**
 * Measures this host for a {@link Simulator}, in a fraction of a second: the rate of one tile of
 * the schedule's products and of copies, all processors at once, the best of several. It stands for
 * an emulated world, whose ranks share the processors and the one proxy that moves the bytes.
 *
 * <p>Not measured, but as the host executor is written: lanes that look for signals less often the
 * longer they wait, and a proxy that sleeps for tens of microseconds.
 */
public final class HostCalibration {
  private static final long NANOS_PER_MEASUREMENT = 60_000_000;
  private static final int LEAST_RUNS = 3;
  private static final long COPY_BYTES = 4 << 20;

  private HostCalibration() {}

  /**
   * Measures.
   *
   * @param schedule whose tiles to measure
   * @return the machine, with unlimited wires: set them with {@link Machine#withWire}
   * @throws UnavailableException when no kernel set of the host has a kernel of the schedule
   */
  public static Machine measure(Schedule schedule) {
    int processors = Runtime.getRuntime().availableProcessors();
    Map<String, Double> rates = new HashMap<>();
    boolean[] seen = new boolean[schedule.kernels().size()];
    for (int rank = 0; rank < schedule.topology().size(); rank++) {
      RankSchedule tasks = schedule.rank(rank);
      for (int task = 0; task < tasks.tasks(); task++) {
        int kernel = tasks.kernel(task);
        if (kernel >= 0
            && !seen[kernel]
            && schedule.kernels().get(kernel).kind().equals(Kernel.GEMM)) {
          seen[kernel] = true;
          DType dtype = dtypeOf(schedule, tasks, tasks.output(tasks.firstOutput(task)));
          rates.merge(
              Machine.rateKey(Kernel.GEMM, dtype),
              TaskCosts.gemmFlops(schedule, tasks, task)
                  / seconds(processors, gemm(schedule, tasks, task)),
              Math::min);
        }
      }
    }
    double copy = COPY_BYTES / seconds(processors, HostCalibration::copy);
    return new Machine(
        "host",
        rates,
        2 * copy,
        copy,
        1_000,
        0,
        new Machine.Wake(500, 250_000),
        60_000,
        new Machine.Lanes(1, 1, Map.of()),
        new Machine.Host(Machine.Sharing.WORLD, processors),
        new Machine.Link(0, 0),
        new Machine.Wire(0, 0, 0, 0),
        new Machine.Proxy(500, 40_000, copy));
  }

  private static DType dtypeOf(Schedule schedule, RankSchedule tasks, int region) {
    return schedule.buffers().get(tasks.regionBuffer(region)).dtype();
  }

  /** Makes what a thread repeats, in memory of its own. */
  private interface Load {
    Runnable in(Arena arena);
  }

  private static Runnable copy(Arena arena) {
    MemorySegment from = arena.allocate(COPY_BYTES, 64);
    MemorySegment to = arena.allocate(COPY_BYTES, 64);
    return () -> to.copyFrom(from);
  }

  private static Load gemm(Schedule schedule, RankSchedule tasks, int task) {
    Kernel kernel = schedule.kernels().get(tasks.kernel(task));
    HostKernelSet set = kernelSet(kernel);
    return arena -> {
      TaskInMemory one = new TaskInMemory(schedule, tasks, task, arena);
      HostKernelSet.HostKernel body = set.kernel(kernel);
      return () -> body.run(one);
    };
  }

  private static HostKernelSet kernelSet(Kernel kernel) {
    for (KernelSet set : ServiceLoader.load(KernelSet.class)) {
      if (set instanceof HostKernelSet host && host.supports(kernel.kind())) {
        return host;
      }
    }
    throw new UnavailableException("no kernel set of the host has " + kernel.kind());
  }

  /** The best time of one repetition, of a thread while all run. */
  private static double seconds(int threads, Load load) {
    double[] best = new double[threads];
    CountDownLatch ready = new CountDownLatch(threads);
    List<Thread> all = new ArrayList<>();
    for (int i = 0; i < threads; i++) {
      int thread = i;
      all.add(Thread.ofPlatform().daemon().start(() -> best[thread] = repeat(load, ready)));
    }
    double sum = 0;
    for (int i = 0; i < threads; i++) {
      boolean interrupted = false;
      while (all.get(i).isAlive()) {
        try {
          all.get(i).join();
        } catch (InterruptedException e) {
          interrupted = true;
        }
      }
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
      sum += best[i];
    }
    if (!(sum > 0)) {
      throw new UnavailableException("the host could not be measured: a kernel failed");
    }
    return sum / threads / 1e9;
  }

  private static double repeat(Load load, CountDownLatch ready) {
    try (Arena arena = Arena.ofConfined()) {
      Runnable body = load.in(arena);
      body.run();
      ready.countDown();
      while (ready.getCount() > 0) {
        Thread.onSpinWait();
      }
      long start = System.nanoTime();
      double best = Double.POSITIVE_INFINITY;
      for (int run = 0;
          run < LEAST_RUNS || System.nanoTime() - start < NANOS_PER_MEASUREMENT;
          run++) {
        long before = System.nanoTime();
        body.run();
        best = Math.min(best, (double) System.nanoTime() - before);
      }
      return best;
    } finally {
      ready.countDown();
    }
  }

  /** A task of the schedule whose regions lie one after another in memory of its own. */
  private static final class TaskInMemory implements HostKernelSet.HostTask {
    private final Schedule schedule;
    private final RankSchedule tasks;
    private final int task;
    private final Map<Integer, MemorySegment> memory = new HashMap<>();
    private int region;

    TaskInMemory(Schedule schedule, RankSchedule tasks, int task, Arena arena) {
      this.schedule = schedule;
      this.tasks = tasks;
      this.task = task;
      int end = tasks.firstPart(tasks.firstStream(task + 1));
      for (int part = tasks.firstPart(tasks.firstStream(task)); part < end; part++) {
        allocate(tasks.partRegion(part), arena);
      }
      for (int o = tasks.firstOutput(task); o < tasks.firstOutput(task + 1); o++) {
        allocate(tasks.output(o), arena);
      }
    }

    private void allocate(int number, Arena arena) {
      memory.computeIfAbsent(
          number, r -> arena.allocate(tasks.regionRows(r) * tasks.regionPitch(r), 64));
    }

    @Override
    public int parts(int stream) {
      int index = tasks.firstStream(task) + stream;
      return index < tasks.firstStream(task + 1)
          ? tasks.firstPart(index + 1) - tasks.firstPart(index)
          : 0;
    }

    @Override
    public void select(int stream, int part) {
      region = tasks.partRegion(tasks.firstPart(tasks.firstStream(task) + stream) + part);
    }

    @Override
    public void selectOutput(int output) {
      region = tasks.output(tasks.firstOutput(task) + output);
    }

    @Override
    public long address() {
      MemorySegment own = memory.get(region);
      if (own == null) {
        throw new IllegalStateException("region " + region + " is of another task");
      }
      return own.address();
    }

    @Override
    public long rows() {
      return tasks.regionRows(region);
    }

    @Override
    public long rowBytes() {
      return tasks.regionRowBytes(region);
    }

    @Override
    public long pitch() {
      return tasks.regionPitch(region);
    }

    @Override
    public DType dtype() {
      return dtypeOf(schedule, tasks, region);
    }
  }
}
