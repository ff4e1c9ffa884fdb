package org.mkernel.collectives;

import java.util.ArrayList;
import java.util.List;
import org.mkernel.api.DType;
import org.mkernel.api.schedule.Topology;
import org.mkernel.api.spi.OperandSpec;
import org.mkernel.api.spi.Problem;

/**
 * What each operator must give, in the terms of {@link Delivery}, and what it may move. Written
 * down once more, without a look at the planners.
 */
final class Terms {
  private final Problem problem;
  private final Topology world;
  private final OperandSpec a;
  private final OperandSpec c;

  Terms(Problem problem) {
    this.problem = problem;
    this.world = problem.topology();
    List<OperandSpec> operands = Problems.provider(problem).operands(problem);
    this.a = operands.getFirst();
    this.c = operands.getLast();
  }

  private static boolean isTrue(Problem problem, String option) {
    return problem.option(option, "false").equals("true");
  }

  /** The output of a rank, row by row. */
  long[] output(int rank) {
    OperandSpec.Shard shard = c.shards().get(rank);
    long[] terms = new long[Math.toIntExact(shard.rows() * shard.columns())];
    for (int i = 0; i < terms.length; i++) {
      terms[i] = element(rank, shard.row() + i / shard.columns(), i % shard.columns());
    }
    return terms;
  }

  private long element(int rank, long row, long column) {
    return switch (problem.operator()) {
      case "all-gather" -> gathered(row, column);
      case "all-gather-gemm" -> {
        long[] left = new long[(int) a.columns()];
        for (int i = 0; i < left.length; i++) {
          left[i] = gathered(row, i);
        }
        yield biased(
            Delivery.product(Delivery.list(left), rightColumn(rank, column)), rank, column);
      }
      case "all-to-all" -> {
        long block = Math.ceilDiv(problem.size("m"), world.size());
        long rows = c.shards().get(rank).rows() / world.size();
        long local = row - c.shards().get(rank).row();
        yield addend((int) (local / rows), rank * block + local % rows, column);
      }
      case "broadcast" -> addend(root(problem), row, column);
      case "reduce-scatter" -> sum(owner(row), source -> addend(source, row, column));
      case "all-reduce" ->
          sum(
              ownerOfElement(row * problem.size("n") + column),
              source -> addend(source, row, column));
      case "gemm-reduce-scatter", "gemm-all-reduce" ->
          // Of a bias of all, each owner adds its own copy.
          biased(sum(owner(row), source -> product(source, row, column)), owner(row), column);
      default -> throw new AssertionError("what does " + problem.operator() + " give?");
    };
  }

  private static int root(Problem problem) {
    return Integer.parseInt(problem.option("root", "0"));
  }

  /** The rank that a row is dealt to. */
  private int owner(long row) {
    return (int) (row / Math.ceilDiv(problem.size("m"), world.size()));
  }

  /** An element of the rows that are sharded. */
  private long gathered(long row, long column) {
    int owner = owner(row);
    long own = row - a.shards().get(owner).row();
    return Delivery.input(owner, "a", own * a.columns() + column);
  }

  /** The rank that an element is dealt to: blocks are of whole lines of 128 bytes. */
  private int ownerOfElement(long element) {
    return (int) (element / block(problem, world.size()));
  }

  private static long block(Problem problem, int blocks) {
    long line = 128 / problem.dtype().bytes();
    long share = Math.ceilDiv(problem.size("m") * problem.size("n"), blocks);
    return Math.ceilDiv(share, line) * line;
  }

  private long biased(long term, int rank, long column) {
    return isTrue(problem, "bias")
        ? Delivery.sum(List.of(term, Delivery.input(rank, "bias", column)))
        : term;
  }

  private long product(int rank, long row, long column) {
    int k = (int) problem.size("k");
    long[] left = new long[k];
    for (int i = 0; i < k; i++) {
      left[i] = Delivery.input(rank, "a", row * k + i);
    }
    return Delivery.product(Delivery.list(left), rightColumn(rank, column));
  }

  private long addend(int rank, long row, long column) {
    return Delivery.input(rank, "a", row * a.columns() + column);
  }

  private long rightColumn(int rank, long column) {
    long k = problem.size("k");
    long[] right = new long[(int) k];
    for (int i = 0; i < k; i++) {
      long at = isTrue(problem, "transpose-b") ? column * k + i : i * problem.size("n") + column;
      right[i] = Delivery.input(rank, "b", at);
    }
    return Delivery.list(right);
  }

  private interface Addend {
    long of(int rank);
  }

  /** The order of every sum: the owner's node by rank, then one partial sum of each other node. */
  private long sum(int owner, Addend addend) {
    List<Long> parts = new ArrayList<>(ofNode(world.node(owner), addend));
    for (int node = 0; node < world.nodes(); node++) {
      if (node != world.node(owner)) {
        parts.add(Delivery.sum(ofNode(node, addend)));
      }
    }
    return Delivery.sum(parts);
  }

  private List<Long> ofNode(int node, Addend addend) {
    List<Long> parts = new ArrayList<>();
    for (int rank = 0; rank < world.size(); rank++) {
      if (world.node(rank) == node) {
        parts.add(addend.of(rank));
      }
    }
    return parts;
  }

  private static long size(Problem problem) {
    return problem.option("partials", "").equals("f32")
        ? DType.F32.bytes()
        : problem.dtype().bytes();
  }

  static long interNodeBytes(Problem problem) {
    return problem.operator().equals("all-to-all")
        ? pairs(problem, (source, target) -> !problem.topology().sameNode(source, target))
        : bytes(problem, problem.topology().nodes() - 1, size(problem));
  }

  /** On each node a row comes once and goes on to all but one of its ranks; or the other way. */
  static long intraNodeBytes(Problem problem) {
    Topology world = problem.topology();
    boolean products = problem.operator().startsWith("gemm-");
    int hops = world.size() - world.nodes();
    return switch (problem.operator()) {
      case "all-to-all" ->
          // What crosses to a node goes on there, unless it arrives where it should be.
          pairs(
              problem,
              (source, target) ->
                  world.sameNode(source, target)
                      || world.railPeer(source, world.node(target)) != target);
      case "broadcast" -> {
        // Besides, the root deals out all but its own block.
        long elements = problem.size("m") * problem.size("n");
        long own = Math.min(elements, block(problem, world.ranks(world.node(root(problem)))));
        yield bytes(problem, hops, 0) + (elements - own) * problem.dtype().bytes();
      }
      default -> bytes(problem, hops, products ? size(problem) : problem.dtype().bytes());
    };
  }

  private interface Pair {
    boolean counts(int source, int target);
  }

  /** The blocks of all-to-all between some pairs of different ranks. */
  private static long pairs(Problem problem, Pair pair) {
    int ranks = problem.topology().size();
    long m = problem.size("m");
    long block = Math.ceilDiv(m, ranks);
    long rows = 0;
    for (int source = 0; source < ranks; source++) {
      for (int target = 0; target < ranks; target++) {
        if (source != target && pair.counts(source, target)) {
          rows += Math.clamp(m - target * block, 0, block);
        }
      }
    }
    return rows * problem.size("n") * problem.dtype().bytes();
  }

  private static long bytes(Problem problem, int hops, long addendSize) {
    long m = problem.size("m");
    long own = problem.dtype().bytes();
    return switch (problem.operator()) {
      case "all-gather", "all-gather-gemm" -> hops * m * problem.size("k") * own;
      case "broadcast" -> hops * m * problem.size("n") * own;
      case "reduce-scatter", "gemm-reduce-scatter" -> hops * m * problem.size("n") * addendSize;
      case "all-reduce", "gemm-all-reduce" -> hops * m * problem.size("n") * (addendSize + own);
      default -> throw new AssertionError("what does " + problem.operator() + " move?");
    };
  }
}
