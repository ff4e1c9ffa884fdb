package org.mkernel.collectives;

import java.util.Collections;
import java.util.stream.IntStream;
import org.mkernel.api.schedule.Topology;
import org.mkernel.api.spi.OperandSpec;
import org.mkernel.api.spi.Problem;

/** The ways in which operands are dealt out. */
final class Operands {
  private Operands() {}

  /** An input of m rows, sharded by rows. */
  static OperandSpec rows(String name, Problem problem, long columns) {
    Topology topology = problem.topology();
    RowSharding sharding = RowSharding.of(problem.size("m"), topology);
    return new OperandSpec(
        name,
        false,
        problem.size("m"),
        columns,
        IntStream.range(0, topology.size())
            .mapToObj(
                r -> new OperandSpec.Shard(sharding.first(r), 0, sharding.count(r), columns))
            .toList());
  }

  /** An operand of which every rank has the whole. */
  static OperandSpec whole(String name, boolean output, Problem problem, OperandSpec.Shard shard) {
    return new OperandSpec(
        name,
        output,
        shard.rows(),
        shard.columns(),
        Collections.nCopies(problem.topology().size(), shard));
  }

  /** An operand in equal blocks of columns, one per rank. */
  static OperandSpec columnBlocks(
      String name, boolean output, Problem problem, long rows, long columns) {
    int size = problem.topology().size();
    return new OperandSpec(
        name,
        output,
        rows,
        Math.multiplyExact(columns, size),
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
        Math.multiplyExact(rows, size),
        columns,
        IntStream.range(0, size)
            .mapToObj(r -> new OperandSpec.Shard(r * rows, 0, rows, columns))
            .toList());
  }

  /** The bytes of each rank's shard. */
  static long[] bytes(OperandSpec operand, Problem problem) {
    return operand.shards().stream()
        .mapToLong(
            s ->
                Math.multiplyExact(
                    Math.multiplyExact(s.rows(), s.columns()), problem.dtype().bytes()))
        .toArray();
  }

  /** Each node receives every row of the other nodes once. */
  static long gatheredBetweenNodes(Problem problem) {
    long bytes = Math.multiplyExact(problem.size("m"), problem.size("k"));
    return Math.multiplyExact(
        Math.multiplyExact(bytes, problem.dtype().bytes()), problem.topology().nodes() - 1);
  }
}
