package org.mkernel.benchmarks.fused;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Random;
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
import org.mkernel.collectives.AllGather;
import org.mkernel.collectives.AllGatherGemm;
import org.mkernel.collectives.AllReduce;
import org.mkernel.collectives.GemmAllReduce;
import org.mkernel.collectives.GemmReduceScatter;
import org.mkernel.collectives.ReduceScatter;

/**
 * Each operator that has parts, against its parts one after the other: the product alone and the
 * plain collective, in pairs, in random order, in f32 on the host. What has no parts (all-gather,
 * reduce-scatter, all-to-all, broadcast) is a part itself.
 *
 * <p>The option {@code emulated.bandwidth} of each case shapes the wire: 0 is none; the others are
 * such that computing and moving take about as long on two common processors.
 */
public final class FusedAgainstUnfused {
  /** Operator, nodes, ranks on each, m, n, k, bytes per second of a rank between nodes. */
  private static final String CASES =
      """
      all-gather-gemm 1 2 1024 512 1024 0
      all-gather-gemm 2 1 1024 512 1024 0
      all-gather-gemm 2 1 1024 512 1024 1e8
      all-gather-gemm 2 2 1024 256 1024 1e8
      all-gather-gemm 4 1 1024 256 1024 2e8
      gemm-reduce-scatter 1 2 1024 1024 512 0
      gemm-reduce-scatter 2 1 1024 1024 512 0
      gemm-reduce-scatter 2 1 1024 1024 512 1e8
      gemm-reduce-scatter 2 2 1024 1024 256 5e7
      gemm-reduce-scatter 4 1 1024 1024 256 1e8
      gemm-all-reduce 1 2 1024 1024 512 0
      gemm-all-reduce 2 1 1024 1024 512 0
      gemm-all-reduce 2 1 1024 1024 512 2e8
      gemm-all-reduce 2 2 1024 1024 256 1e8
      all-reduce 1 2 1024 1024 0 0
      all-reduce 2 1 1024 1024 0 2e8
      all-reduce 2 2 1024 1024 0 2e8
      """;

  private static final int WARM_UP = 2;
  private static final double TOLERANCE = 1e-3;

  private record Case(
      String operator, int nodes, int ranks, long m, long n, long k, double bandwidth) {
    static Case of(String line) {
      String[] f = line.trim().split(" +");
      return new Case(
          f[0],
          Integer.parseInt(f[1]),
          Integer.parseInt(f[2]),
          Long.parseLong(f[3]),
          Long.parseLong(f[4]),
          Long.parseLong(f[5]),
          Double.parseDouble(f[6]));
    }

    int world() {
      return nodes * ranks;
    }
  }

  /** What a rank prepared: the whole, its parts in order, and where both put their result. */
  private record Contest(Operation fused, List<Operation> parts, Tensor result, Tensor ofParts) {}

  private final Case one;
  private final int pairs;
  private final CyclicBarrier barrier;
  private final boolean[] fusedFirst;
  private final double[] fused;
  private final double[] unfused;

  private FusedAgainstUnfused(Case one, int pairs) {
    this.one = one;
    this.pairs = pairs;
    this.barrier = new CyclicBarrier(one.world());
    this.fusedFirst = new boolean[WARM_UP + pairs];
    this.fused = new double[WARM_UP + pairs];
    this.unfused = new double[WARM_UP + pairs];
    Random random = new Random(1);
    for (int pair = 0; pair < fusedFirst.length; pair++) {
      fusedFirst[pair] = random.nextBoolean();
    }
  }

  /**
   * Prints, for each case, medians and the median ratio with its interval of 95 %: above 1, fused
   * is faster.
   *
   * @param arguments the number of pairs, 25 unless given, then cases as in the table
   */
  public static void main(String... arguments) {
    int pairs = arguments.length > 0 ? Integer.parseInt(arguments[0]) : 25;
    List<Case> cases =
        (arguments.length > 1 ? Arrays.stream(arguments).skip(1) : CASES.lines())
            .map(Case::of)
            .toList();
    System.out.printf(
        "%-20s %5s %-16s %9s %11s %12s %7s  %s%n",
        "operator", "world", "m,n,k", "bytes/s", "fused", "unfused", "ratio", "95 %");
    int slower = 0;
    for (Case one : cases) {
      slower += new FusedAgainstUnfused(one, pairs).run() ? 0 : 1;
    }
    System.out.printf("fused is slower in %d of %d cases%n", slower, cases.size());
  }

  /** Runs, prints, and tells whether the fused one may be as fast. */
  private boolean run() {
    Config config =
        Config.fromEnvironment()
            .option("device", "host")
            .option("emulated.bandwidth", Long.toString((long) one.bandwidth()));
    try (MKernel mkernel = MKernel.open(config);
        World world = mkernel.local(one.nodes(), one.ranks())) {
      // A product alone is a world of one rank.
      List<World> alone = world.split(rank -> rank);
      world.eachLocalRank(rank -> duel(rank, alone.get(rank.index()).localRanks().getFirst()));
    }
    double[] ratios = new double[pairs];
    for (int pair = 0; pair < pairs; pair++) {
      ratios[pair] = unfused[WARM_UP + pair] / fused[WARM_UP + pair];
    }
    Arrays.sort(ratios);
    int half = (int) Math.ceil(0.98 * Math.sqrt(pairs));
    double high = ratios[Math.min(pairs - 1, pairs / 2 + half)];
    System.out.printf(
        Locale.ROOT,
        "%-20s %2dx%-2d %-16s %9.2g %8.2f ms %9.2f ms %7.3f  %.3f ... %.3f%n",
        one.operator(),
        one.nodes(),
        one.ranks(),
        one.m() + "," + one.n() + "," + one.k(),
        one.bandwidth(),
        median(fused),
        median(unfused),
        ratios[pairs / 2],
        ratios[Math.max(0, pairs / 2 - half)],
        high);
    return high >= 1;
  }

  private static double median(double[] millis) {
    double[] measured = Arrays.copyOfRange(millis, WARM_UP, millis.length);
    Arrays.sort(measured);
    return measured[measured.length / 2];
  }

  private void duel(Rank rank, Rank alone) {
    Contest contest = prepare(rank, alone);
    for (int pair = 0; pair < fusedFirst.length; pair++) {
      for (int turn = 0; turn < 2; turn++) {
        boolean isFused = (turn == 0) == fusedFirst[pair];
        meet();
        long start = System.nanoTime();
        if (isFused) {
          run(contest.fused());
        } else {
          contest.parts().forEach(FusedAgainstUnfused::run);
        }
        meet();
        if (rank.index() == 0) {
          (isFused ? fused : unfused)[pair] = (System.nanoTime() - start) / 1e6;
        }
      }
    }
    requireEqual(contest.result(), contest.ofParts());
    meet();
    contest.fused().close();
    contest.parts().forEach(Operation::close);
  }

  private static void run(Operation operation) {
    operation.await(operation.launch(), TimeUnit.MINUTES.toNanos(1));
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

  private Contest prepare(Rank rank, Rank alone) {
    long m = one.m();
    long n = one.n();
    long k = one.k();
    long block = Math.ceilDiv(m, one.world());
    long own = Math.clamp(m - rank.index() * block, 0, block);
    return switch (one.operator()) {
      case "all-gather-gemm" -> {
        Tensor a = random(rank, own, k);
        Tensor b = random(rank, k, n);
        Tensor all = tensor(rank, m, k);
        Tensor c = tensor(rank, m, n);
        Tensor d = tensor(rank, m, n);
        yield contest(
            rank.prepare(AllGatherGemm.of(a, b, c)),
            c,
            d,
            rank.prepare(AllGather.of(a, all)),
            alone.prepare(AllGatherGemm.of(all, b, d)));
      }
      case "gemm-reduce-scatter", "gemm-all-reduce" -> {
        boolean everywhere = one.operator().equals("gemm-all-reduce");
        Tensor a = random(rank, m, k);
        Tensor b = random(rank, k, n);
        Tensor product = tensor(rank, m, n);
        Tensor c = tensor(rank, everywhere ? m : own, n);
        Tensor d = tensor(rank, everywhere ? m : own, n);
        Collective whole = everywhere ? GemmAllReduce.of(a, b, c) : GemmReduceScatter.of(a, b, c);
        Collective sum = everywhere ? AllReduce.of(product, d) : ReduceScatter.of(product, d);
        yield contest(
            rank.prepare(whole),
            c,
            d,
            alone.prepare(AllGatherGemm.of(a, b, product)),
            rank.prepare(sum));
      }
      case "all-reduce" -> {
        Tensor a = random(rank, m, n);
        Tensor slice = tensor(rank, own, n);
        Tensor c = tensor(rank, m, n);
        Tensor d = tensor(rank, m, n);
        yield contest(
            rank.prepare(AllReduce.of(a, c)),
            c,
            d,
            rank.prepare(ReduceScatter.of(a, slice)),
            rank.prepare(AllGather.of(slice, d)));
      }
      default ->
          throw new IllegalArgumentException(
              "operator \"%s\" has no parts; allowed are all-gather-gemm, gemm-reduce-scatter,"
                      .formatted(one.operator())
                  + " gemm-all-reduce and all-reduce");
    };
  }

  private static Contest contest(
      Operation fused, Tensor result, Tensor ofParts, Operation... parts) {
    return new Contest(fused, List.of(parts), result, ofParts);
  }

  private static Tensor tensor(Rank rank, long rows, long columns) {
    return rank.allocate(DType.F32, rows, columns);
  }

  private static Tensor random(Rank rank, long rows, long columns) {
    Tensor tensor = tensor(rank, rows, columns);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment values = arena.allocate(rows * tensor.pitch(), 8);
      Random random = new Random(rank.index() * 31L + rows);
      for (long i = 0; i < rows * columns; i++) {
        values.setAtIndex(ValueLayout.JAVA_FLOAT, i, random.nextFloat() - 0.5f);
      }
      tensor.write(0, values);
    }
    return tensor;
  }

  private static void requireEqual(Tensor one, Tensor other) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment a = arena.allocate(one.rows() * one.pitch(), 8);
      MemorySegment b = arena.allocate(one.rows() * one.pitch(), 8);
      one.read(0, a);
      other.read(0, b);
      for (long i = 0; i < a.byteSize() / Float.BYTES; i++) {
        float x = a.getAtIndex(ValueLayout.JAVA_FLOAT, i);
        float y = b.getAtIndex(ValueLayout.JAVA_FLOAT, i);
        if (!(Math.abs(x - y) <= TOLERANCE * Math.max(1, Math.abs(x)))) {
          throw new IllegalStateException("element %d is %s fused, %s unfused".formatted(i, x, y));
        }
      }
    }
  }
}
