package org.mkernel.collectives;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.mkernel.api.DType;
import org.mkernel.api.Failure;
import org.mkernel.api.MKernelException;
import org.mkernel.api.MismatchException;
import org.mkernel.api.UsageException;
import org.mkernel.api.schedule.Topology;
import org.mkernel.api.spi.CollectiveProvider.Request;
import org.mkernel.api.spi.CollectiveProvider.Shape;
import org.mkernel.api.spi.OperandSpec;
import org.mkernel.api.spi.OptionSpec;
import org.mkernel.api.spi.Problem;

/** What the ranks ask for, compared. */
final class Requests {
  private final String operator;
  private final List<Request> byRank;

  Requests(String operator, Topology topology, List<Request> byRank) {
    this.operator = operator;
    this.byRank = byRank;
    if (byRank.size() != topology.size()) {
      throw new UsageException(
          "%s: requests of %d ranks for a world of %d"
              .formatted(operator, byRank.size(), topology.size()));
    }
    Map<String, String> first = byRank.getFirst().options();
    for (int rank = 1; rank < byRank.size(); rank++) {
      Map<String, String> own = byRank.get(rank).options();
      if (!own.equals(first)) {
        throw new MismatchException(
            "%s: rank 0 has options %s, rank %d has options %s"
                .formatted(operator, new TreeMap<>(first), rank, new TreeMap<>(own)),
            Failure.UNKNOWN.withPeer(rank).withOperation(operator));
      }
    }
  }

  Map<String, String> options() {
    return byRank.getFirst().options();
  }

  DType dtype() {
    return shape(0, "a").dtype();
  }

  Shape shape(int rank, String operand) {
    Shape shape = byRank.get(rank).operands().get(operand);
    if (shape == null) {
      throw new UsageException(
          "%s needs the operand %s; rank %d gives %s"
              .formatted(
                  operator, operand, rank, new TreeSet<>(byRank.get(rank).operands().keySet())),
          Failure.UNKNOWN.withRank(rank).withOperation(operator));
    }
    return shape;
  }

  /** The rows of all ranks together. */
  long totalRows(String operand) {
    long sum = 0;
    for (int rank = 0; rank < byRank.size(); rank++) {
      try {
        sum = Math.addExact(sum, shape(rank, operand).rows());
      } catch (ArithmeticException e) {
        throw new UsageException(
            "%s: %s has more rows than fit in 64 bits".formatted(operator, operand),
            Failure.UNKNOWN.withOperation(operator),
            e);
      }
    }
    return sum;
  }

  /** Requires that each rank has exactly the operands of the problem, in their shapes. */
  void require(List<OperandSpec> operands, Problem problem) {
    for (int rank = 0; rank < byRank.size(); rank++) {
      for (OperandSpec operand : operands) {
        if (!fits(rank, operand, problem.dtype())) {
          throw misfit(rank, operand, problem);
        }
      }
      TreeSet<String> extra = new TreeSet<>(byRank.get(rank).operands().keySet());
      operands.forEach(o -> extra.remove(o.name()));
      if (!extra.isEmpty()) {
        throw new UsageException(
            "%s: rank %d gives operands %s, which it does not have; allowed are %s"
                .formatted(
                    operator, rank, extra, operands.stream().map(OperandSpec::name).toList()),
            Failure.UNKNOWN.withRank(rank).withOperation(operator));
      }
    }
  }

  private static Shape wanted(int rank, OperandSpec operand, DType dtype) {
    OperandSpec.Shard shard = operand.shards().get(rank);
    return new Shape(dtype, shard.rows(), shard.columns());
  }

  private boolean fits(int rank, OperandSpec operand, DType dtype) {
    Shape wanted = wanted(rank, operand, dtype);
    Shape own = shape(rank, operand.name());
    // Of a part without rows nobody reads the columns.
    return own.equals(wanted) || (own.rows() == 0 && wanted.rows() == 0 && own.dtype() == dtype);
  }

  /** What is wrong: that ranks disagree, or, where they are all alike, what they agree on. */
  private MKernelException misfit(int rank, OperandSpec operand, Problem problem) {
    Shape wanted = wanted(rank, operand, problem.dtype());
    Shape own = shape(rank, operand.name());
    String sizes = new TreeMap<>(problem.sizes()).toString();
    for (int other = 0; other < byRank.size(); other++) {
      Shape theirs = shape(other, operand.name());
      if (other != rank
          && !(theirs.equals(own) && wanted(other, operand, problem.dtype()).equals(wanted))) {
        return new MismatchException(
            "%s: rank %d has %s of %s, rank %d has %s; for %s over %d ranks rank %d must have %s"
                .formatted(
                    operator,
                    rank,
                    operand.name(),
                    own,
                    other,
                    theirs,
                    sizes,
                    byRank.size(),
                    rank,
                    wanted),
            Failure.UNKNOWN.withPeer(rank).withOperation(operator));
      }
    }
    return new UsageException(
        "%s: %s is %s; for %s in %s over %d ranks it must be %s"
            .formatted(
                operator,
                operand.name(),
                own,
                sizes,
                problem.dtype().label(),
                byRank.size(),
                wanted),
        Failure.UNKNOWN.withOperation(operator));
  }

  /** Requires that options are known and have allowed values. */
  static void requireOptions(String operator, Map<String, String> options, List<OptionSpec> known) {
    options.forEach((name, value) -> {
      OptionSpec spec =
          known.stream()
              .filter(o -> o.name().equals(name))
              .findFirst()
              .orElseThrow(() ->
                  new UsageException(
                      "%s has no option \"%s\"; allowed are %s"
                          .formatted(
                              operator, name, known.stream().map(OptionSpec::name).toList())));
      if (!spec.allowed().isEmpty() && !spec.allowed().contains(value)) {
        throw new UsageException(
            "option %s is \"%s\"; allowed are %s".formatted(name, value, spec.allowed()));
      }
    });
  }
}
