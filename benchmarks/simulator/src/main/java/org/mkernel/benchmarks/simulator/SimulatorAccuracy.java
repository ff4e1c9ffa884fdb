package org.mkernel.benchmarks.simulator;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.mkernel.api.Collective;
import org.mkernel.api.Config;
import org.mkernel.api.DType;
import org.mkernel.api.MKernel;
import org.mkernel.api.Operation;
import org.mkernel.api.Rank;
import org.mkernel.api.Tensor;
import org.mkernel.api.World;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.schedule.Topology;
import org.mkernel.api.spi.CollectiveProvider;
import org.mkernel.api.spi.OperandSpec;
import org.mkernel.api.spi.Problem;
import org.mkernel.check.HostCalibration;
import org.mkernel.check.Machine;
import org.mkernel.check.Simulation;
import org.mkernel.check.Simulator;

/**
 * Runs operators on the host executor over a shaped emulated wire, and prints what the simulator
 * predicted beside what was measured: the best of many launches that all ranks start together,
 * since other work on the machine only adds.
 */
public final class SimulatorAccuracy {
  private static final long NANOS_PER_CASE = 1_500_000_000L;
  private static final int LEAST_LAUNCHES = 12;
  private static final int MOST_LAUNCHES = 300;
  private static final double CLOSE = 0.15;

  private record Case(
      String operator,
      int nodes,
      int ranks,
      long m,
      long n,
      long k,
      double bandwidth,
      long latency) {
    static Case of(String line) {
      String[] f = line.trim().split(" +");
      return new Case(
          f[0],
          Integer.parseInt(f[1]),
          Integer.parseInt(f[2]),
          Long.parseLong(f[3]),
          Long.parseLong(f[4]),
          Long.parseLong(f[5]),
          Double.parseDouble(f[6]),
          Long.parseLong(f[7]));
    }
  }

  /**
   * Operator, nodes, ranks on each, m, n, k, bytes per second of a rank, nanoseconds of latency.
   */
  private static final String CASES =
      """
      all-gather 2 1 4096 0 1024 2e8 0
      all-gather 4 1 2048 0 1024 1e8 1000000
      all-gather 2 2 1024 0 512 5e7 0
      all-gather 2 2 4096 0 1024 4e8 100000
      all-gather 8 1 4096 0 1024 4e8 0
      all-gather 3 2 3000 0 500 1e8 500000
      reduce-scatter 2 1 1024 512 0 5e7 0
      reduce-scatter 2 2 2048 1024 0 2e8 0
      reduce-scatter 4 1 2048 1024 0 2e8 1000000
      reduce-scatter 3 1 999 777 0 5e7 200000
      all-reduce 2 2 1024 512 0 5e7 0
      all-reduce 2 1 2048 1024 0 2e8 500000
      all-reduce 4 1 1024 1024 0 2e8 0
      all-to-all 2 2 1024 512 0 5e7 0
      all-to-all 4 1 2048 1024 0 2e8 1000000
      all-to-all 2 1 4096 1024 0 4e8 0
      broadcast 2 2 1024 512 0 5e7 0
      broadcast 4 1 2048 512 0 2e8 500000
      all-gather-gemm 2 1 1024 512 512 5e7 0
      all-gather-gemm 2 1 1024 1024 1024 1e8 0
      all-gather-gemm 2 2 1024 128 512 5e7 0
      all-gather-gemm 4 1 1024 256 512 5e7 1000000
      all-gather-gemm 2 2 2048 128 1024 1e8 200000
      gemm-reduce-scatter 2 1 1024 512 256 5e7 0
      gemm-reduce-scatter 2 2 1024 512 128 5e7 0
      gemm-reduce-scatter 4 1 1024 512 128 5e7 500000
      gemm-all-reduce 2 1 1024 512 512 5e7 0
      gemm-all-reduce 2 2 1024 512 128 5e7 0
      all-gather-gemm 1 1 1024 1024 1024 0 0
      all-gather-gemm 1 2 1024 1024 1024 0 0
      all-gather-gemm 1 1 2048 2048 512 0 0
      all-gather-gemm 2 1 1024 1024 1024 4e9 0
      all-gather-gemm 2 1 1024 2048 512 2e9 0
      all-gather-gemm 2 2 1024 1024 1024 4e9 0
      gemm-reduce-scatter 1 2 1024 1024 1024 0 0
      gemm-reduce-scatter 2 1 1024 1024 1024 4e9 0
      gemm-all-reduce 1 1 1024 1024 1024 0 0
      gemm-all-reduce 2 1 1024 1024 1024 4e9 0
      """;

  private SimulatorAccuracy() {}

  /**
   * Runs all cases.
   *
   * @param lines cases, as in the table above; none for those
   */
  public static void main(String... lines) {
    List<Case> cases =
        (lines.length == 0 ? CASES.lines() : List.of(lines).stream()).map(Case::of).toList();
    System.out.printf(
        "%-20s %5s %-16s %9s %8s %7s %11s %12s %12s %11s  %s%n",
        "operator",
        "world",
        "m,n,k",
        "bytes/s",
        "latency",
        "tasks",
        "predicted",
        "best",
        "median",
        "error",
        "bound by");
    int close = 0;
    Measured host = new Measured();
    for (Case one : cases) {
      if (Math.abs(run(one, host)) <= CLOSE) {
        close++;
      }
    }
    System.out.printf("%d of %d within %.0f %%%n", close, cases.size(), CLOSE * 100);
  }

  private static double run(Case one, Measured host) {
    Config config =
        Config.defaults()
            .option("device", "host")
            .option("transport", "emulated")
            .option("emulated.bandwidth", Long.toString((long) one.bandwidth()))
            .option("emulated.latency", Long.toString(one.latency()));
    try (MKernel mkernel = MKernel.open(config);
        World world = mkernel.local(one.nodes(), one.ranks())) {
      CollectiveProvider operator = mkernel.collective(one.operator());
      Map<String, Long> given = Map.of("m", one.m(), "n", one.n(), "k", one.k());
      Map<String, Long> sizes = new HashMap<>();
      operator.sizes().keySet().forEach(name -> sizes.put(name, given.get(name)));
      Problem problem =
          new Problem(
              one.operator(), Topology.of(one.nodes(), one.ranks()), DType.F32, sizes, Map.of());
      Schedule schedule = operator.plan(problem);
      Machine before = HostCalibration.measure(schedule);
      double[] measured = new Launches(world, operator, problem).nanos();
      Machine machine = host.best(before, HostCalibration.measure(schedule));
      Simulation simulation =
          Simulator.simulate(schedule, machine.withWire(one.bandwidth(), one.latency()), 1);
      double error = simulation.firstNanos() / measured[0] - 1;
      System.out.printf(
          Locale.ROOT,
          "%-20s %2dx%-2d %-16s %9.2g %8d %7d %8.0f µs %9.0f µs %9.0f µs %+9.1f %%  %s%n",
          one.operator(),
          one.nodes(),
          one.ranks(),
          one.m() + "," + one.n() + "," + one.k(),
          one.bandwidth(),
          one.latency(),
          schedule.tasks(),
          simulation.firstNanos() / 1e3,
          measured[0] / 1e3,
          measured[1] / 1e3,
          error * 100,
          simulation.bound().reason());
      return error;
    }
  }

  /**
   * The host as far as other work lets it be seen: best rates, and the median of what is shared.
   */
  private static final class Measured {
    private final List<Double> together = new ArrayList<>();

    Machine best(Machine... measured) {
      Machine best = measured[0];
      for (Machine one : measured) {
        together.add(one.host().together());
        for (Map.Entry<String, Double> rate : one.flopsPerSecond().entrySet()) {
          if (rate.getValue() > best.flopsPerSecond().get(rate.getKey())) {
            best = best.withRate(rate.getKey(), rate.getValue());
          }
        }
      }
      together.sort(null);
      Machine.Host host = best.host();
      return best.withHost(
          new Machine.Host(host.sharing(), host.processors(), together.get(together.size() / 2)));
    }
  }

  /** Launches that all ranks start together. */
  private static final class Launches {
    private final World world;
    private final CollectiveProvider operator;
    private final Problem problem;
    private final List<OperandSpec> operands;
    private final CyclicBarrier barrier;
    private final List<Long> times = new ArrayList<>();
    private volatile boolean last;

    Launches(World world, CollectiveProvider operator, Problem problem) {
      this.world = world;
      this.operator = operator;
      this.problem = problem;
      this.operands = operator.operands(problem);
      this.barrier = new CyclicBarrier(problem.topology().size());
    }

    /** Best and median. */
    double[] nanos() {
      world.eachLocalRank(this::launch);
      times.subList(0, 2).clear();
      times.sort(null);
      return new double[] {times.getFirst(), times.get(times.size() / 2)};
    }

    private void launch(Rank rank) {
      Map<String, Tensor> tensors = new HashMap<>();
      for (OperandSpec operand : operands) {
        OperandSpec.Shard shard = operand.shards().get(rank.index());
        tensors.put(operand.name(), rank.allocate(problem.dtype(), shard.rows(), shard.columns()));
      }
      try (Operation operation = rank.prepare(Collective.of(operator.name(), tensors, Map.of()))) {
        long begin = System.nanoTime();
        while (!last) {
          meet();
          long start = System.nanoTime();
          operation.await(operation.launch(), TimeUnit.MINUTES.toNanos(2));
          meet();
          if (rank.index() == 0) {
            long now = System.nanoTime();
            times.add(now - start);
            boolean enough = times.size() >= LEAST_LAUNCHES && now - begin > NANOS_PER_CASE;
            last = enough || times.size() == MOST_LAUNCHES;
          }
          meet();
        }
      }
    }

    private void meet() {
      try {
        barrier.await(2, TimeUnit.MINUTES);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new IllegalStateException(e);
      } catch (BrokenBarrierException | TimeoutException e) {
        throw new IllegalStateException(e);
      }
    }
  }
}
