package org.mkernel.cli;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.mkernel.api.Collective;
import org.mkernel.api.Operation;
import org.mkernel.api.Rank;
import org.mkernel.api.Stopwatch;
import org.mkernel.api.Tensor;
import org.mkernel.api.spi.OperandSpec;
import org.mkernel.api.spi.Problem;

/** One device that computes a product, over several sets of operands in turn. */
final class GemmContestant implements AutoCloseable {
  private static final long AWAIT_NANOS = TimeUnit.MINUTES.toNanos(2);

  private final Rank rank;
  private final Problem problem;
  private final List<OperandSpec> operands;
  private final RandomElements random;
  private final Optional<Stopwatch> stopwatch;
  private final List<Operation> operations = new ArrayList<>();
  private final List<Tensor> tensors = new ArrayList<>();
  private final List<Tensor> outputs = new ArrayList<>();

  GemmContestant(Rank rank, Problem problem, List<OperandSpec> operands, RandomElements random) {
    this.rank = rank;
    this.problem = problem;
    this.operands = operands;
    this.random = random;
    this.stopwatch = rank.stopwatch();
  }

  /** Adds sets of operands until there are so many, and launches each new one once. */
  void grow(int sets) {
    while (operations.size() < sets) {
      Map<String, Tensor> named = new HashMap<>();
      for (OperandSpec operand : operands) {
        OperandSpec.Shard shard = operand.shards().get(rank.index());
        Tensor tensor = rank.allocate(problem.dtype(), shard.rows(), shard.columns());
        named.put(operand.name(), tensor);
        tensors.add(tensor);
        if (operand.output()) {
          outputs.add(tensor);
        } else {
          random.fill(tensor, 31 * operations.size() + named.size());
        }
      }
      Operation operation =
          rank.prepare(Collective.of(problem.operator(), named, problem.options()));
      operations.add(operation);
      operation.await(operation.launch(), AWAIT_NANOS);
    }
  }

  /**
   * Launches every set once, back to back, and gives the nanoseconds of one on the average. The
   * first ones lead in and are not counted: while they run, the host gets ahead of the device.
   */
  double sample() {
    long[] epochs = new long[operations.size()];
    int lead = leadOf(epochs.length);
    for (int i = 0; i < lead; i++) {
      epochs[i] = operations.get(i).launch();
    }
    long start = System.nanoTime();
    stopwatch.ifPresent(s -> s.start(0));
    for (int i = lead; i < epochs.length; i++) {
      epochs[i] = operations.get(i).launch();
    }
    stopwatch.ifPresent(s -> s.stop(0));
    for (int i = 0; i < epochs.length; i++) {
      operations.get(i).await(epochs[i], AWAIT_NANOS);
    }
    long nanos = stopwatch.map(Stopwatch::nanos).orElseGet(() -> System.nanoTime() - start);
    return (double) nanos / (epochs.length - lead);
  }

  /** How many of so many sets lead in. */
  private static int leadOf(int sets) {
    return Math.min(sets - 1, Math.ceilDiv(sets, 8));
  }

  /** A row of the product of the first set. */
  float[] row(long row) {
    Tensor c = outputs.getFirst();
    int columns = Math.toIntExact(c.columns());
    float[] values = new float[columns];
    HostTensor elements = new HostTensor(c);
    for (int column = 0; column < columns; column++) {
      values[column] = elements.get(row, column);
    }
    return values;
  }

  /** Bytes of one set of operands. */
  long setBytes() {
    return operands.stream()
        .map(operand -> operand.shards().get(rank.index()))
        .mapToLong(shard -> shard.rows() * shard.columns() * problem.dtype().bytes())
        .sum();
  }

  @Override
  public void close() {
    operations.forEach(Operation::close);
    tensors.forEach(Tensor::close);
    stopwatch.ifPresent(Stopwatch::close);
  }
}
