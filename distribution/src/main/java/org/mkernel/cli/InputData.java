package org.mkernel.cli;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.mkernel.api.DType;
import org.mkernel.api.UsageException;
import org.mkernel.api.spi.CollectiveProvider;
import org.mkernel.api.spi.OperandSpec;
import org.mkernel.api.spi.Problem;
import org.mkernel.cli.io.TensorFile;

/**
 * The values of the inputs: of a file where one is given, else integers in −2 … 2 that depend on
 * the seed and the place in the whole operand. Where products are added up, the first operand has
 * so many zeros that no partial sum has more bits than the type: sums are exact.
 */
final class InputData implements CollectiveProvider.Inputs, AutoCloseable {
  private static final double LARGEST_PRODUCT = 4;

  private final DType dtype;
  private final long seed;
  private final List<OperandSpec> operands;

  /** One in so many elements of a row of the first operand is not zero. */
  private final long stride;

  private final Map<String, TensorFile> files = new HashMap<>();

  InputData(
      CollectiveProvider operator, Problem problem, long seed, Map<String, String> fileNames) {
    this.dtype = problem.dtype();
    this.seed = seed;
    this.operands = operator.operands(problem);
    double outputs =
        operands.stream()
            .filter(OperandSpec::output)
            .mapToDouble(o -> (double) o.rows() * o.columns())
            .sum();
    double products = operator.flops(problem) / 2 / outputs;
    double most = Math.scalb(1.0, dtype.significandBits()) / LARGEST_PRODUCT;
    this.stride = (long) Math.max(1, Math.ceil(products / most));
    boolean open = false;
    try {
      fileNames.forEach((name, file) -> files.put(name, open(name, file)));
      open = true;
    } finally {
      if (!open) {
        close();
      }
    }
  }

  private TensorFile open(String name, String file) {
    OperandSpec operand =
        operands.stream()
            .filter(o -> o.name().equals(name) && !o.output())
            .findFirst()
            .orElseThrow(() ->
                new UsageException(
                    "--input names \"%s\"; the inputs are %s"
                        .formatted(
                            name,
                            operands.stream()
                                .filter(o -> !o.output())
                                .map(OperandSpec::name)
                                .toList())));
    TensorFile tensor = TensorFile.open(file);
    boolean whole = tensor.rows() == operand.rows() && tensor.columns() == operand.columns();
    if (!whole && !isCopyForEach(operand, tensor)) {
      String message =
          "%s is %d x %d; operand %s needs %d x %d%s"
              .formatted(
                  file,
                  tensor.rows(),
                  tensor.columns(),
                  name,
                  operand.rows(),
                  operand.columns(),
                  equalShards(operand)
                      ? ", or %d x %d for every rank the same"
                          .formatted(
                              operand.shards().getFirst().rows(),
                              operand.shards().getFirst().columns())
                      : "");
      tensor.close();
      throw new UsageException(message);
    }
    return tensor;
  }

  private static boolean equalShards(OperandSpec operand) {
    OperandSpec.Shard first = operand.shards().getFirst();
    return operand.shards().stream()
        .allMatch(s -> s.rows() == first.rows() && s.columns() == first.columns());
  }

  private static boolean isCopyForEach(OperandSpec operand, TensorFile tensor) {
    OperandSpec.Shard first = operand.shards().getFirst();
    return equalShards(operand)
        && tensor.rows() == first.rows()
        && tensor.columns() == first.columns();
  }

  /** Whether every input is generated, and so integer-valued. */
  boolean isGenerated() {
    return files.isEmpty();
  }

  @Override
  public void row(int rank, String name, long row, double[] out) {
    int index = 0;
    while (!operands.get(index).name().equals(name)) {
      index++;
    }
    OperandSpec operand = operands.get(index);
    OperandSpec.Shard shard = operand.shards().get(rank);
    int columns = Math.toIntExact(shard.columns());
    TensorFile file = files.get(name);
    if (file == null) {
      for (int column = 0; column < columns; column++) {
        out[column] = value(index, shard.row() + row, shard.column() + column);
      }
      return;
    }
    if (file.rows() == operand.rows() && file.columns() == operand.columns()) {
      file.read(shard.row() + row, shard.column(), columns, out, 0);
    } else {
      file.read(row, 0, columns, out, 0);
    }
    // What the operator sees is rounded to its type, and so the reference must be.
    for (int column = 0; column < columns; column++) {
      out[column] = dtype.decode(dtype.encode((float) out[column]));
    }
  }

  private int value(int operand, long row, long column) {
    if (operand == 0 && Math.floorMod(row + column + seed, stride) != 0) {
      return 0;
    }
    long z = seed * 0x9e3779b97f4a7c15L + operand * 0xd1b54a32d192ed03L;
    z += row * 0x8cb92ba72f3d8dd7L + column * 0xabc98388fb8fac03L;
    z = (z ^ (z >>> 30)) * 0xbf58476d1ce4e5b9L;
    z = (z ^ (z >>> 27)) * 0x94d049bb133111ebL;
    return (int) Long.remainderUnsigned(z ^ (z >>> 31), 5) - 2;
  }

  @Override
  public void close() {
    files.values().forEach(TensorFile::close);
  }
}
