package org.mkernel.kernels.host;

import java.lang.foreign.Arena;
import org.jspecify.annotations.Nullable;
import org.mkernel.api.Activation;
import org.mkernel.api.DType;
import org.mkernel.api.UsageException;
import org.mkernel.api.spi.HostKernelSet;

/**
 * A tile of a product: sums over the parts of its streams in fp32, then adds the bias, applies the
 * activation and rounds once. 16-bit operands are widened into scratch memory of the lane.
 */
final class HostGemm implements HostKernelSet.HostKernel {
  private final boolean transposeB;
  private final boolean bias;
  private final Activation activation;
  private final OpenBlas blas = new OpenBlas();
  private final Scratch left = new Scratch();
  private final Scratch right = new Scratch();
  private final Scratch sums = new Scratch();

  HostGemm(boolean transposeB, boolean bias, Activation activation) {
    this.transposeB = transposeB;
    this.bias = bias;
    this.activation = activation;
  }

  @Override
  public void run(HostKernelSet.HostTask task) {
    task.selectOutput(0);
    DType dtype = task.dtype();
    int m = size(task.rows());
    int n = size(task.rowBytes() / dtype.bytes());
    boolean direct = dtype == DType.F32;
    long to = direct ? task.address() : sums.address(4L * m * n);
    int strideC = direct ? size(task.pitch() / Float.BYTES) : n;
    for (int part = 0; part < task.parts(0); part++) {
      task.select(0, part);
      int k = size(task.rowBytes() / dtype.bytes());
      long a = operand(task, dtype, left);
      int strideA = stride(task, dtype);
      task.select(1, part);
      long b = operand(task, dtype, right);
      int strideB = stride(task, dtype);
      blas.multiply(transposeB, m, n, k, a, strideA, b, strideB, part == 0 ? 0f : 1f, to, strideC);
    }
    finish(task, dtype, direct, to, strideC, m, n);
  }

  private static int size(long elements) {
    if (elements > Integer.MAX_VALUE) {
      throw new UsageException(
          "a tile has an extent of %d elements; OpenBLAS allows %d. Remedy: smaller tiles"
              .formatted(elements, Integer.MAX_VALUE));
    }
    return (int) elements;
  }

  /** The selected region in fp32: itself, or widened. */
  private static long operand(HostKernelSet.HostTask task, DType dtype, Scratch scratch) {
    if (dtype == DType.F32) {
      return task.address();
    }
    long columns = task.rowBytes() / dtype.bytes();
    long address = scratch.address(Math.multiplyExact(4 * columns, task.rows()));
    Elements.widen(dtype, task.address(), task.pitch(), task.rows(), columns, address);
    return address;
  }

  private static int stride(HostKernelSet.HostTask task, DType dtype) {
    return size((dtype == DType.F32 ? task.pitch() : task.rowBytes()) / dtype.bytes());
  }

  private void finish(
      HostKernelSet.HostTask task,
      DType dtype,
      boolean direct,
      long from,
      int stride,
      int m,
      int n) {
    if (direct && !bias && activation == Activation.NONE) {
      return;
    }
    long biasAddress = 0;
    if (bias) {
      task.select(2, 0);
      biasAddress = task.address();
    }
    task.selectOutput(0);
    long to = task.address();
    long pitch = task.pitch();
    for (long row = 0; row < m; row++) {
      for (long column = 0; column < n; column++) {
        float sum = Memory.ALL.get(Memory.FLOAT, from + 4 * (row * stride + column));
        if (bias) {
          sum += Elements.get(dtype, biasAddress + column * dtype.bytes());
        }
        Elements.put(dtype, to + row * pitch + column * dtype.bytes(), activate(sum));
      }
    }
  }

  private float activate(float x) {
    return switch (activation) {
      case NONE -> x;
      case RELU -> x > 0 || Float.isNaN(x) ? x : 0f;
      case GELU, SILU -> (float) activation.apply(x);
    };
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
