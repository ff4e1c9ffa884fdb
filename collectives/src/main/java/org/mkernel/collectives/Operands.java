package org.mkernel.collectives;

import java.util.Collections;
import java.util.List;
import java.util.stream.IntStream;
import org.mkernel.api.UsageException;
import org.mkernel.api.schedule.ScheduleBuilder;
import org.mkernel.api.schedule.Topology;
import org.mkernel.api.spi.OperandSpec;
import org.mkernel.api.spi.Problem;

/** The ways in which operands are dealt out. */
final class Operands {
  private static final long MAX_BYTES = 1L << 62;

  private Operands() {}

  /** An operand of m rows, sharded by rows. */
  static OperandSpec rows(String name, boolean output, Problem problem, long columns) {
    Topology topology = problem.topology();
    RowSharding sharding = RowSharding.of(problem.size("m"), topology);
    return new OperandSpec(
        name,
        output,
        problem.size("m"),
        columns,
        IntStream.range(0, topology.size())
            .mapToObj(r -> new OperandSpec.Shard(sharding.first(r), 0, sharding.count(r), columns))
            .toList());
  }

  /** An operand of which every rank has the whole. */
  static OperandSpec whole(String name, boolean output, Problem problem, long rows, long columns) {
    OperandSpec.Shard all = new OperandSpec.Shard(0, 0, rows, columns);
    return new OperandSpec(
        name, output, rows, columns, Collections.nCopies(problem.topology().size(), all));
  }

  private static long times(long extent, int ranks) {
    if (extent > MAX_BYTES / ranks) {
      throw new UsageException("%d on each of %d ranks is more than 2^62".formatted(extent, ranks));
    }
    return extent * ranks;
  }

  /** An operand in equal blocks of columns, one per rank. */
  static OperandSpec columnBlocks(
      String name, boolean output, Problem problem, long rows, long columns) {
    int size = problem.topology().size();
    return new OperandSpec(
        name,
        output,
        rows,
        times(columns, size),
        IntStream.range(0, size)
            .mapToObj(r -> new OperandSpec.Shard(0, r * columns, rows, columns))
            .toList());
  }

  /** An operand in equal blocks of rows, one per rank. */
  static OperandSpec rowBlocks(String name, Problem problem, long rows, long columns) {
    int size = problem.topology().size();
    return new OperandSpec(
        name,
        false,
        times(rows, size),
        columns,
        IntStream.range(0, size)
            .mapToObj(r -> new OperandSpec.Shard(r * rows, 0, rows, columns))
            .toList());
  }

  /**
   * Requires that offsets into operands, and the bytes of all nodes together, fit in 64 bits.
   *
   * @throws UsageException when they do not
   */
  static void requireAddressable(List<OperandSpec> operands, Problem problem) {
    for (OperandSpec operand : operands) {
      double bytes = (double) operand.rows() * operand.columns() * problem.dtype().bytes();
      if (bytes * problem.topology().nodes() > MAX_BYTES) {
        throw new UsageException(
            "%s: operand %s of %d x %d has too many bytes: over all nodes at most 2^62 are allowed"
                .formatted(problem.operator(), operand.name(), operand.rows(), operand.columns()));
      }
    }
  }

  /** The bytes of each rank's shard. */
  static long[] bytes(OperandSpec operand, Problem problem) {
    return operand.shards().stream()
        .mapToLong(s -> s.rows() * s.columns() * problem.dtype().bytes())
        .toArray();
  }

  /** Declares an operand's buffer. */
  static int declare(OperandSpec operand, Problem problem, ScheduleBuilder builder) {
    long[] bytes = bytes(operand, problem);
    return operand.output()
        ? builder.output(operand.name(), problem.dtype(), bytes)
        : builder.input(operand.name(), problem.dtype(), bytes);
  }

  /** Each node receives every row of the other nodes once. */
  static long gatheredBetweenNodes(Problem problem) {
    return spreadBetweenNodes(problem, "k");
  }

  /** All but one node receive each of m rows of so many columns. */
  static long spreadBetweenNodes(Problem problem, String columns) {
    long elements = Math.multiplyExact(problem.size("m"), problem.size(columns));
    return Math.multiplyExact(
        Math.multiplyExact(elements, problem.dtype().bytes()), problem.topology().nodes() - 1);
  }

  /** Where the rows of a rank start in a tensor that has those of all. */
  static long firstByte(Problem problem, int rank, String columns) {
    RowSharding rows = RowSharding.of(problem.size("m"), problem.topology());
    return rows.first(rank) * problem.size(columns) * problem.dtype().bytes();
  }
}
