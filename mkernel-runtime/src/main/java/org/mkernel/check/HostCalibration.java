package org.mkernel.check;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.concurrent.atomic.AtomicInteger;
import org.mkernel.api.DType;
import org.mkernel.api.UnavailableException;
import org.mkernel.api.schedule.Kernel;
import org.mkernel.api.schedule.RankSchedule;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.spi.HostKernelSet;
import org.mkernel.api.spi.KernelSet;

/**
 * Measures this host for a {@link Simulator}, in a fraction of a second: the rate of one tile of
 * the schedule's products and of copies, alone and on all processors at once, the best of several.
 * It stands for an emulated world, whose ranks share the processors and the one proxy that moves
 * the bytes.
 *
 * <p>Not measured, but as the host executor is written: lanes that look for signals less often the
 * longer they wait, and a proxy that sleeps for tens of microseconds.
 */
public final class HostCalibration {
  private static final long NANOS_PER_MEASUREMENT = 200_000_000;
  private static final int LEAST_RUNS = 5;

  /** Processors are compared on few rows: the shorter, the likelier undisturbed. */
  private static final long FEW_ROWS = 64;

  /** All processors together do at least this much of what one does alone; else it is noise. */
  private static final double LEAST_TOGETHER = 0.75;

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
    double copyAlone = seconds(1, HostCalibration::copy);
    double together = 1;
    boolean products = false;
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
          double alone = seconds(1, gemm(schedule, tasks, task, Long.MAX_VALUE));
          rates.merge(
              Machine.rateKey(Kernel.GEMM, dtype),
              TaskCosts.gemmFlops(schedule, tasks, task) / alone,
              Math::min);
          Load few = gemm(schedule, tasks, task, FEW_ROWS);
          together = Math.min(together, seconds(1, few) / seconds(processors, few));
          products = true;
        }
      }
    }
    if (!products) {
      together = Math.min(1, copyAlone / seconds(processors, HostCalibration::copy));
    }
    double copy = COPY_BYTES / copyAlone;
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
        new Machine.Host(
            Machine.Sharing.WORLD, processors, Math.max(together, LEAST_TOGETHER / processors)),
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

  private static Load gemm(Schedule schedule, RankSchedule tasks, int task, long mostRows) {
    Kernel kernel = schedule.kernels().get(tasks.kernel(task));
    HostKernelSet set = kernelSet(kernel);
    return arena -> {
      TaskInMemory one = new TaskInMemory(schedule, tasks, task, mostRows, arena);
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

  /** The best time in which all of some threads, started at once, do their load once. */
  private static double seconds(int threads, Load load) {
    Round round = new Round(threads);
    List<Thread> others = new ArrayList<>();
    for (int i = 1; i < threads; i++) {
      others.add(Thread.ofPlatform().daemon().start(() -> round.join(load)));
    }
    double best = round.lead(load);
    boolean interrupted = false;
    for (Thread other : others) {
      while (other.isAlive()) {
        try {
          other.join();
        } catch (InterruptedException e) {
          interrupted = true;
        }
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
    return best / 1e9;
  }

  /**
   * Threads that do their loads at the same time, again and again. A thread that fails ends all.
   */
  private static final class Round {
    private final int threads;
    private final AtomicInteger started = new AtomicInteger();
    private final AtomicInteger finished = new AtomicInteger();
    private volatile boolean over;

    Round(int threads) {
      this.threads = threads;
    }

    double lead(Load load) {
      try (Arena arena = Arena.ofConfined()) {
        Runnable body = load.in(arena);
        body.run();
        double best = Double.POSITIVE_INFINITY;
        long begin = System.nanoTime();
        for (int run = 1;
            run <= LEAST_RUNS || System.nanoTime() - begin < NANOS_PER_MEASUREMENT;
            run++) {
          meet(started, run);
          long start = System.nanoTime();
          body.run();
          meet(finished, run);
          best = Math.min(best, (double) System.nanoTime() - start);
        }
        return best;
      } finally {
        over = true;
      }
    }

    void join(Load load) {
      try (Arena arena = Arena.ofConfined()) {
        Runnable body = load.in(arena);
        body.run();
        for (int run = 1; meet(started, run); run++) {
          body.run();
          meet(finished, run);
        }
      } finally {
        over = true;
      }
    }

    private boolean meet(AtomicInteger arrived, int run) {
      arrived.incrementAndGet();
      while (arrived.get() < run * threads) {
        if (over) {
          return false;
        }
        Thread.onSpinWait();
      }
      return true;
    }
  }

  /** A task of the schedule whose regions lie one after another in memory of its own. */
  private static final class TaskInMemory implements HostKernelSet.HostTask {
    private final Schedule schedule;
    private final RankSchedule tasks;
    private final int task;
    private final long mostRows;
    private final Map<Integer, MemorySegment> memory = new HashMap<>();
    private int region;
    private boolean cut;

    TaskInMemory(Schedule schedule, RankSchedule tasks, int task, long mostRows, Arena arena) {
      this.mostRows = mostRows;
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
      cut = stream == 0;
    }

    @Override
    public void selectOutput(int output) {
      region = tasks.output(tasks.firstOutput(task) + output);
      cut = true;
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
      return cut ? Math.min(mostRows, tasks.regionRows(region)) : tasks.regionRows(region);
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
