package org.mkernel.collectives;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.mkernel.api.schedule.Kernel;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.schedule.ScheduleBuilder;
import org.mkernel.api.schedule.Topology;
import org.mkernel.api.spi.CollectiveProvider;
import org.mkernel.api.spi.OperandSpec;
import org.mkernel.api.spi.OptionSpec;
import org.mkernel.api.spi.Problem;

/** The operator {@code all-gather}. Peers write into the output: there is no workspace. */
public final class AllGatherProvider implements CollectiveProvider {
  private static final List<OptionSpec> OPTIONS = List.of(Tuning.CHUNK_ROWS);

  /** For {@link java.util.ServiceLoader}. */
  public AllGatherProvider() {}

  @Override
  public String name() {
    return AllGather.NAME;
  }

  @Override
  public String description() {
    return "C = all rows of A, on every rank";
  }

  @Override
  public Map<String, String> sizes() {
    Map<String, String> sizes = new LinkedHashMap<>();
    sizes.put("m", "rows of A, all ranks together");
    sizes.put("k", "columns of A");
    return sizes;
  }

  @Override
  public List<OptionSpec> options() {
    return OPTIONS;
  }

  @Override
  public Problem problem(Topology topology, List<Request> requests) {
    Requests all = new Requests(name(), topology, requests);
    Problem problem =
        new Problem(
            name(),
            topology,
            all.dtype(),
            Map.of("m", all.totalRows("a"), "k", all.shape(0, "a").columns()),
            all.options());
    all.require(operands(problem), problem);
    return problem;
  }

  @Override
  public List<OperandSpec> operands(Problem problem) {
    Requests.requireOptions(name(), problem.options(), OPTIONS);
    long m = problem.size("m");
    long k = problem.size("k");
    List<OperandSpec> operands =
        List.of(
            Operands.rows("a", problem, k),
            Operands.whole("c", true, problem, new OperandSpec.Shard(0, 0, m, k)));
    Operands.requireAddressable(operands, problem);
    return operands;
  }

  @Override
  public Schedule plan(Problem problem) {
    List<OperandSpec> operands = operands(problem);
    Topology topology = problem.topology();
    RowSharding sharding = RowSharding.of(problem.size("m"), topology);
    long rowBytes = problem.size("k") * problem.dtype().bytes();
    ScheduleBuilder builder = new ScheduleBuilder(name(), topology);
    int a = Operands.declare(operands.getFirst(), problem, builder);
    int c = Operands.declare(operands.getLast(), problem, builder);
    int copy = builder.kernel(new Kernel(Kernel.COPY, Map.of()));
    GatherPlan gather =
        new GatherPlan(
            builder,
            sharding,
            new GatherPlan.Rows(a, c, rowBytes),
            Tuning.chunkRows(problem, sharding.block()));
    for (int rank = 0; rank < topology.size(); rank++) {
      gather.send(rank);
      ScheduleBuilder.RankBuilder tasks = builder.rank(rank);
      int pool = tasks.pool("copy");
      for (int chunk = 0; chunk < gather.chunks(rank); chunk++) {
        long rows = gather.rowCount(rank, chunk);
        long to = gather.firstRow(rank, chunk) * rowBytes;
        long from = to - sharding.first(rank) * rowBytes;
        tasks.compute(copy).stream()
            .part(tasks.region(a, from, rows, rowBytes, rowBytes))
            .output(tasks.region(c, to, rows, rowBytes, rowBytes));
      }
      // A launch is over when all is here: somebody must wait for what nobody computes with.
      gather.visitArrivals(
          rank, (source, chunk) -> tasks.notifies().await(gather.arrived(source, chunk)));
      tasks.role("compute", true, pool);
    }
    return builder.build();
  }

  @Override
  public long interNodeBytes(Problem problem) {
    return Operands.gatheredBetweenNodes(problem);
  }

  @Override
  public double flops(Problem problem) {
    return 0;
  }

  @Override
  public Reference reference(Problem problem, Inputs inputs) {
    RowSharding sharding = RowSharding.of(problem.size("m"), problem.topology());
    return (rank, operand, row, values, magnitudes) -> {
      int owner = sharding.owner(row);
      inputs.row(owner, "a", row - sharding.first(owner), values);
      for (int column = 0; column < values.length; column++) {
        magnitudes[column] = Math.abs(values[column]);
      }
    };
  }
}
