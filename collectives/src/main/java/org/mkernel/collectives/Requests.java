package org.mkernel.collectives;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.mkernel.api.DType;
import org.mkernel.api.Failure;
import org.mkernel.api.MismatchException;
import org.mkernel.api.UsageException;
import org.mkernel.api.spi.CollectiveProvider.Request;
import org.mkernel.api.spi.CollectiveProvider.Shape;
import org.mkernel.api.spi.OperandSpec;
import org.mkernel.api.spi.OptionSpec;

/** What the ranks ask for, compared. */
final class Requests {
  private final String operator;
  private final List<Request> byRank;

  Requests(String operator, List<Request> byRank) {
    this.operator = operator;
    this.byRank = byRank;
    for (int rank = 1; rank < byRank.size(); rank++) {
      Map<String, String> first = byRank.getFirst().options();
      Map<String, String> own = byRank.get(rank).options();
      if (!own.equals(first)) {
        throw mismatch(rank, "options " + new TreeMap<>(first), "options " + new TreeMap<>(own));
      }
    }
  }

  private MismatchException mismatch(int rank, String first, String own) {
    return new MismatchException(
        "%s: rank 0 has %s, rank %d has %s".formatted(operator, first, rank, own),
        Failure.UNKNOWN.withPeer(rank).withOperation(operator));
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
      sum = Math.addExact(sum, shape(rank, operand).rows());
    }
    return sum;
  }

  /** Requires that each rank has exactly the operands of the problem, in their shapes. */
  void require(List<OperandSpec> operands, DType dtype) {
    for (int rank = 0; rank < byRank.size(); rank++) {
      for (OperandSpec operand : operands) {
        OperandSpec.Shard shard = operand.shards().get(rank);
        Shape wanted = new Shape(dtype, shard.rows(), shard.columns());
        Shape own = shape(rank, operand.name());
        boolean empty = own.rows() == 0 && shard.rows() == 0 && own.dtype() == dtype;
        if (!own.equals(wanted) && !empty) {
          throw new MismatchException(
              "%s: operand %s of rank %d is %s; with rank 0 holding a = %s it must be %s"
                  .formatted(operator, operand.name(), rank, own, shape(0, "a"), wanted),
              Failure.UNKNOWN.withPeer(rank).withOperation(operator));
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

  /** Requires that options are known and have allowed values. */
  static void requireOptions(
      String operator, Map<String, String> options, List<OptionSpec> known) {
    options.forEach(
        (name, value) -> {
          OptionSpec spec =
              known.stream()
                  .filter(o -> o.name().equals(name))
                  .findFirst()
                  .orElseThrow(
                      () ->
                          new UsageException(
                              "%s has no option \"%s\"; allowed are %s"
                                  .formatted(
                                      operator,
                                      name,
                                      known.stream().map(OptionSpec::name).toList())));
          if (!spec.allowed().isEmpty() && !spec.allowed().contains(value)) {
            throw new UsageException(
                "option %s is \"%s\"; allowed are %s".formatted(name, value, spec.allowed()));
          }
        });
  }
}
