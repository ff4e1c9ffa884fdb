package org.mkernel.kernels.host;

import java.lang.foreign.Arena;
import org.jspecify.annotations.Nullable;
import org.mkernel.api.Activation;
import org.mkernel.api.DType;
import org.mkernel.api.UsageException;
import org.mkernel.api.spi.HostKernelSet;

/**
 * A tile of a product: sums over the parts of its streams in fp32, then adds the bias, applies the
 * activation and rounds once. OpenBLAS reads and writes fp32 regions in place; 16-bit operands, and
 * fp32 rows that lie at odd addresses, go through scratch memory of the lane.
 */
final class HostGemm implements HostKernelSet.HostKernel {
  private final boolean transposeB;
  private final Epilogue epilogue;
  private final OpenBlas blas = new OpenBlas();
  private final Row row = new Row();
  private final Scratch left = new Scratch();
  private final Scratch right = new Scratch();
  private final Scratch sums = new Scratch();

  /** Of the operand that {@link #operand} prepared last, in elements. */
  private long stride;

  HostGemm(boolean transposeB, boolean bias, Activation activation) {
    this.transposeB = transposeB;
    this.epilogue = new Epilogue(bias, activation);
  }

  @Override
  public void run(HostKernelSet.HostTask task) {
    task.selectOutput(0);
    DType dtype = task.dtype();
    long m = task.rows();
    long n = columns(task);
    boolean direct = inPlace(task);
    long to = direct ? task.address() : sums.address(bytes(m, n));
    long strideOfC = direct ? task.pitch() / Float.BYTES : n;
    int parts = task.parts(0);
    if (parts == 0 || parts != task.parts(1)) {
      throw new UsageException(
          "a product has %d parts of A and %d of B; both need the same number, at least 1"
              .formatted(parts, task.parts(1)));
    }
    for (int part = 0; part < parts; part++) {
      task.select(0, part);
      long k = columns(task);
      expect("A", task, m, k);
      long a = operand(task, left);
      long strideOfA = stride;
      task.select(1, part);
      expect("B", task, transposeB ? n : k, transposeB ? k : n);
      long b = operand(task, right);
      blas.multiply(
          transposeB, m, n, k, a, strideOfA, b, stride, part == 0 ? 0f : 1f, to, strideOfC);
    }
    if (!direct || !epilogue.changesNothing()) {
      finish(task, dtype, to, strideOfC * Float.BYTES, m, n);
    }
  }

  private void finish(
      HostKernelSet.HostTask task, DType dtype, long from, long fromPitch, long m, long n) {
    DType biasType = dtype;
    long bias = 0;
    if (epilogue.hasBias()) {
      task.select(2, 0);
      expect("the bias", task, 1, n);
      biasType = task.dtype();
      bias = task.address();
    }
    task.selectOutput(0);
    epilogue.run(from, fromPitch, biasType, bias, dtype, task.address(), task.pitch(), m, n);
  }

  private static long columns(HostKernelSet.HostTask task) {
    return task.rowBytes() / task.dtype().bytes();
  }

  private static long bytes(long rows, long columns) {
    return Math.multiplyExact(Math.multiplyExact(rows, columns), Float.BYTES);
  }

  /** A tile whose shapes do not fit would be wrong without a word. */
  private static void expect(String what, HostKernelSet.HostTask task, long rows, long columns) {
    if (task.rows() != rows || task.rowBytes() != columns * task.dtype().bytes()) {
      throw new UsageException(
          "%s of a product is %d rows of %d bytes; %d x %d %s is needed"
              .formatted(what, task.rows(), task.rowBytes(), rows, columns, task.dtype().label()));
    }
  }

  /** Whether OpenBLAS can use the selected region where it lies. */
  private static boolean inPlace(HostKernelSet.HostTask task) {
    return task.dtype() == DType.F32 && ((task.address() | task.pitch()) & 3) == 0;
  }

  /** The selected region in fp32: itself, or converted. */
  private long operand(HostKernelSet.HostTask task, Scratch scratch) {
    if (inPlace(task)) {
      stride = task.pitch() / Float.BYTES;
      return task.address();
    }
    DType dtype = task.dtype();
    long rows = task.rows();
    long columns = columns(task);
    long to = scratch.address(bytes(rows, columns));
    for (long r = 0; r < rows; r++) {
      long from = task.address() + r * task.pitch();
      for (long column = 0; column < columns; column += Row.LENGTH) {
        int count = Row.length(column, columns);
        row.load(dtype, from + column * dtype.bytes(), count);
        row.store(DType.F32, to + (r * columns + column) * Float.BYTES, count);
      }
    }
    stride = columns;
    return to;
  }

  @Override
  public void close() {
    left.close();
    right.close();
    sums.close();
  }

  /** Memory of one lane that grows and is kept. */
  private static final class Scratch {
    private @Nullable Arena arena;
    private long address;
    private long bytes;

    @SuppressWarnings("MustBeClosedChecker") // It lives until more is needed, or the lane ends.
    long address(long needed) {
      if (needed > bytes) {
        close();
        Arena grown = Arena.ofShared();
        arena = grown;
        address = grown.allocate(needed, 64).address();
        bytes = needed;
      }
      return address;
    }

    void close() {
      if (arena != null) {
        arena.close();
        arena = null;
        bytes = 0;
      }
    }
  }
}
