package org.mkernel.collectives;

import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.stream.IntStream;
import org.mkernel.api.UsageException;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.spi.OperandSpec;
import org.mkernel.api.spi.OptionSpec;
import org.mkernel.api.spi.Problem;

/** The operator {@code broadcast}. */
public final class BroadcastProvider extends Operator {
  private static final OptionSpec ROOT =
      new OptionSpec("root", "the rank that has A", "0", List.of());

  /** For {@link java.util.ServiceLoader}. */
  public BroadcastProvider() {
    super(
        Broadcast.NAME,
        "C = A of one rank, on every rank",
        sizes("m", "rows of A", "n", "columns of A"),
        List.of(ROOT, Tuning.CHUNK_ELEMENTS));
  }

  private static int root(Problem problem) {
    String text = problem.option(ROOT.name(), "0");
    int ranks = problem.topology().size();
    try {
      int root = Integer.parseInt(text);
      if (root >= 0 && root < ranks) {
        return root;
      }
    } catch (NumberFormatException e) {
      // Reported below, with the text.
    }
    throw new UsageException(
        "option %s is \"%s\"; a rank from 0 to %d is needed"
            .formatted(ROOT.name(), text, ranks - 1));
  }

  @Override
  Map<String, Long> sizes(Requests requests) {
    return Map.of("m", requests.shape(0, "c").rows(), "n", requests.shape(0, "c").columns());
  }

  @Override
  List<OperandSpec> layout(Problem problem) {
    int root = root(problem);
    long m = problem.size("m");
    long n = problem.size("n");
    List<OperandSpec.Shard> shards =
        IntStream.range(0, problem.topology().size())
            .mapToObj(rank -> new OperandSpec.Shard(0, 0, rank == root ? m : 0, n))
            .toList();
    return List.of(
        new OperandSpec("a", false, m, n, shards), Operands.whole("c", true, problem, m, n));
  }

  @Override
  public OptionalLong inPlace(Problem problem, int rank) {
    return OptionalLong.of(0);
  }

  @Override
  public Schedule plan(Problem problem) {
    return new BroadcastPlan(problem, operands(problem), root(problem)).plan();
  }

  @Override
  public long interNodeBytes(Problem problem) {
    return Operands.spreadBetweenNodes(problem, "n");
  }

  @Override
  public Reference reference(Problem problem, Inputs inputs) {
    int root = root(problem);
    return (rank, operand, row, values, magnitudes) -> {
      inputs.row(root, "a", row, values);
      Magnitudes.of(values, magnitudes);
    };
  }
}
