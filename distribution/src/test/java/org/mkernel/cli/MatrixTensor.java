package org.mkernel.cli;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.mkernel.api.DType;
import org.mkernel.api.Tensor;

/** A tensor in plain memory. */
record MatrixTensor(DType dtype, long rows, long columns, MemorySegment memory) implements Tensor {
  static MatrixTensor of(DType dtype, long rows, long columns) {
    return new MatrixTensor(
        dtype, rows, columns, Arena.ofAuto().allocate(rows * columns * dtype.bytes(), 8));
  }

  @Override
  public long pitch() {
    return columns * dtype.bytes();
  }

  @Override
  public long address() {
    return memory.address();
  }

  @Override
  public void read(long offset, MemorySegment to) {
    to.copyFrom(memory.asSlice(offset, to.byteSize()));
  }

  @Override
  public void write(long offset, MemorySegment from) {
    memory.asSlice(offset, from.byteSize()).copyFrom(from);
  }

  @Override
  public void close() {}
}
