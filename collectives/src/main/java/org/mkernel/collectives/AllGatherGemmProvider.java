package org.mkernel.collectives;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.mkernel.api.Activation;
import org.mkernel.api.schedule.Kernel;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.schedule.ScheduleBuilder;
import org.mkernel.api.schedule.Topology;
import org.mkernel.api.spi.CollectiveProvider;
import org.mkernel.api.spi.OperandSpec;
import org.mkernel.api.spi.OptionSpec;
import org.mkernel.api.spi.Problem;

/** The operator {@code all-gather-gemm}: rows are gathered into a workspace, tiles computed from it. */
public final class AllGatherGemmProvider implements CollectiveProvider {
  private static final List<String> BOOLEAN = List.of("false", "true");
  private static final List<OptionSpec> OPTIONS =
      List.of(
          new OptionSpec("transpose-b", "B is n x k", "false", BOOLEAN),
          new OptionSpec("bias", "a row is added to each row of C", "false", BOOLEAN),
          new OptionSpec(
              "epilogue",
              "function applied to each element of C",
              "none",
              List.of("none", "relu", "gelu", "silu")),
          Tuning.CHUNK_ROWS,
          Tuning.TILE_ROWS,
          Tuning.TILE_COLUMNS);

  /** Slots of the workspace: the next launch may send while this one still computes. */
  private static final int DEPTH = 2;

  /** For {@link java.util.ServiceLoader}. */
  public AllGatherGemmProvider() {}

  @Override
  public String name() {
    return AllGatherGemm.NAME;
  }

  @Override
  public String description() {
    return "C = A·B: A sharded by rows over the ranks, each rank with its own B";
  }

  @Override
  public Map<String, String> sizes() {
    Map<String, String> sizes = new LinkedHashMap<>();
    sizes.put("m", "rows of A, all ranks together");
    sizes.put("n", "columns of B, on each rank");
    sizes.put("k", "columns of A");
    return sizes;
  }

  @Override
  public List<OptionSpec> options() {
    return OPTIONS;
  }

  private static boolean transposed(Problem problem) {
    return problem.option("transpose-b", "false").equals("true");
  }

  private static boolean biased(Problem problem) {
    return problem.option("bias", "false").equals("true");
  }

  @Override
  public Problem problem(Topology topology, List<Request> requests) {
    Requests all = new Requests(name(), requests);
    boolean transposed = all.options().getOrDefault("transpose-b", "false").equals("true");
    Shape b = all.shape(0, "b");
    Problem problem =
        new Problem(
            name(),
            topology,
            all.dtype(),
            Map.of(
                "m", all.totalRows("a"),
                "n", transposed ? b.rows() : b.columns(),
                "k", all.shape(0, "a").columns()),
            all.options());
    all.require(operands(problem), problem.dtype());
    return problem;
  }

  @Override
  public List<OperandSpec> operands(Problem problem) {
    Requests.requireOptions(name(), problem.options(), OPTIONS);
    long n = problem.size("n");
    long k = problem.size("k");
    List<OperandSpec> operands = new ArrayList<>();
    operands.add(Operands.rows("a", problem, k));
    operands.add(
        transposed(problem)
            ? Operands.rowBlocks("b", problem, n, k)
            : Operands.columnBlocks("b", false, problem, k, n));
    if (biased(problem)) {
      operands.add(Operands.columnBlocks("bias", false, problem, 1, n));
    }
    operands.add(Operands.columnBlocks("c", true, problem, problem.size("m"), n));
    return operands;
  }

  @Override
  public Schedule plan(Problem problem) {
    return new Planner(problem, operands(problem)).plan();
  }

  /** One plan in the making. */
  private final class Planner {
    private final Problem problem;
    private final Topology topology;
    private final RowSharding sharding;
    private final long elementBytes;
    private final long n;
    private final long k;
    private final long tileRows;
    private final long tileColumns;
    private final boolean transposed;
    private final ScheduleBuilder builder;
    private final int a;
    private final int b;
    private final int bias;
    private final int c;
    private final int gathered;
    private final int gemm;
    private final GatherPlan gather;

    Planner(Problem problem, List<OperandSpec> operands) {
      this.problem = problem;
      topology = problem.topology();
      sharding = RowSharding.of(problem.size("m"), topology);
      elementBytes = problem.dtype().bytes();
      n = problem.size("n");
      k = problem.size("k");
      tileRows = Tuning.tileRows(problem);
      tileColumns = Tuning.tileColumns(problem);
      transposed = transposed(problem);
      builder = new ScheduleBuilder(name(), topology);
      int[] index = new int[operands.size()];
      for (int o = 0; o < index.length; o++) {
        OperandSpec operand = operands.get(o);
        long[] bytes = Operands.bytes(operand, problem);
        index[o] =
            operand.output()
                ? builder.output(operand.name(), problem.dtype(), bytes)
                : builder.input(operand.name(), problem.dtype(), bytes);
      }
      a = index[0];
      b = index[1];
      bias = biased(problem) ? index[2] : -1;
      c = index[index.length - 1];
      long all = Math.multiplyExact(problem.size("m"), k * elementBytes);
      gathered = topology.size() > 1 ? builder.workspace("gathered", problem.dtype(), all, DEPTH) : a;
      gemm =
          builder.kernel(
              new Kernel(
                  Kernel.GEMM,
                  Map.of(
                      Kernel.TRANSPOSE_B, Boolean.toString(transposed),
                      Kernel.BIAS, Boolean.toString(bias >= 0),
                      Kernel.ACTIVATION,
                          Activation.of(problem.option("epilogue", "none")).label())));
      gather =
          new GatherPlan(
              builder,
              sharding,
              new GatherPlan.Rows(a, gathered, k * elementBytes),
              Tuning.chunkRows(problem, sharding.block()));
    }

    Schedule plan() {
      for (int rank = 0; rank < topology.size(); rank++) {
        gather.send(rank);
        ScheduleBuilder.RankBuilder tasks = builder.rank(rank);
        int pool = tasks.pool("gemm");
        // Rows that are here, then those of the own node, then those of the nodes beyond.
        int node = topology.node(rank);
        for (int hop = 0; hop < topology.nodes(); hop++) {
          int from = (node + topology.nodes() - hop) % topology.nodes();
          int ranks = topology.ranks(from);
          for (int step = 0; step < ranks; step++) {
            tiles(tasks, rank, topology.rank(from, (topology.localIndex(rank) + step) % ranks));
          }
        }
        tasks.role("compute", true, pool);
      }
      return builder.build();
    }

    private void tiles(ScheduleBuilder.RankBuilder tasks, int rank, int source) {
      for (int chunk = 0; chunk < gather.chunks(source); chunk++) {
        long end = gather.firstRow(source, chunk) + gather.rowCount(source, chunk);
        for (long row = gather.firstRow(source, chunk); row < end; row += tileRows) {
          long rows = Math.min(tileRows, end - row);
          for (long column = 0; column < n; column += tileColumns) {
            tile(tasks, rank, source, chunk, row, rows, column);
          }
        }
      }
    }

    private void tile(
        ScheduleBuilder.RankBuilder tasks,
        int rank,
        int source,
        int chunk,
        long row,
        long rows,
        long column) {
      long columns = Math.min(tileColumns, n - column);
      long kBytes = k * elementBytes;
      long nBytes = n * elementBytes;
      boolean own = source == rank;
      tasks.compute(gemm);
      if (!own) {
        tasks.await(gather.arrived(source, chunk));
      }
      tasks
          .stream()
          .part(
              own
                  ? tasks.region(a, (row - sharding.first(rank)) * kBytes, rows, kBytes, kBytes)
                  : tasks.region(gathered, row * kBytes, rows, kBytes, kBytes))
          .stream()
          .part(
              transposed
                  ? tasks.region(b, column * kBytes, columns, kBytes, kBytes)
                  : tasks.region(b, column * elementBytes, k, columns * elementBytes, nBytes));
      if (bias >= 0) {
        tasks
            .stream()
            .part(
                tasks.region(
                    bias, column * elementBytes, 1, columns * elementBytes, nBytes));
      }
      tasks.output(
          tasks.region(
              c, row * nBytes + column * elementBytes, rows, columns * elementBytes, nBytes));
    }
  }

  @Override
  public long interNodeBytes(Problem problem) {
    return Operands.gatheredBetweenNodes(problem);
  }

  @Override
  public double flops(Problem problem) {
    return 2.0
        * problem.size("m")
        * problem.size("n")
        * problem.size("k")
        * problem.topology().size();
  }

  @Override
  public Reference reference(Problem problem, Inputs inputs) {
    return new GemmReference(problem, inputs, transposed(problem), biased(problem));
  }

  /** Row by row, B of each rank read once. */
  private static final class GemmReference implements Reference {
    private final Problem problem;
    private final Inputs inputs;
    private final boolean transposed;
    private final boolean biased;
    private final Activation activation;
    private final RowSharding sharding;
    private final int n;
    private final int k;
    private final Map<Integer, double[][]> b = new ConcurrentHashMap<>();

    GemmReference(Problem problem, Inputs inputs, boolean transposed, boolean biased) {
      this.problem = problem;
      this.inputs = inputs;
      this.transposed = transposed;
      this.biased = biased;
      this.activation = Activation.of(problem.option("epilogue", "none"));
      this.sharding = RowSharding.of(problem.size("m"), problem.topology());
      this.n = Math.toIntExact(problem.size("n"));
      this.k = Math.toIntExact(problem.size("k"));
    }

    private double[][] rowsOfB(int rank) {
      return b.computeIfAbsent(
          rank,
          r -> {
            double[][] rows = new double[k][n];
            if (!transposed) {
              for (int i = 0; i < k; i++) {
                inputs.row(r, "b", i, rows[i]);
              }
              return rows;
            }
            double[] column = new double[k];
            for (int j = 0; j < n; j++) {
              inputs.row(r, "b", j, column);
              for (int i = 0; i < k; i++) {
                rows[i][j] = column[i];
              }
            }
            return rows;
          });
    }

    @Override
    public void row(int rank, String operand, long row, double[] values, double[] magnitudes) {
      double[] left = new double[k];
      int owner = Math.toIntExact(row / sharding.block());
      inputs.row(owner, "a", row - sharding.first(owner), left);
      java.util.Arrays.fill(values, 0, n, 0);
      java.util.Arrays.fill(magnitudes, 0, n, 0);
      if (biased) {
        inputs.row(rank, "bias", 0, values);
        for (int j = 0; j < n; j++) {
          magnitudes[j] = Math.abs(values[j]);
        }
      }
      double[][] right = rowsOfB(rank);
      for (int i = 0; i < k; i++) {
        multiplyAdd(left[i], right[i], values, magnitudes, n);
      }
      if (activation != Activation.NONE) {
        for (int j = 0; j < n; j++) {
          values[j] = activation.apply(values[j]);
        }
      }
    }

    /** On its own, so that it is compiled to vector instructions. */
    private static void multiplyAdd(
        double x, double[] y, double[] values, double[] magnitudes, int count) {
      for (int j = 0; j < count; j++) {
        double product = x * y[j];
        values[j] += product;
        magnitudes[j] += Math.abs(product);
      }
    }
  }
}
