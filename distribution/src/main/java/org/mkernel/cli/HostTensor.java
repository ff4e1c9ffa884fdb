package org.mkernel.cli;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import org.mkernel.api.DType;
import org.mkernel.api.Tensor;

/** The elements of a tensor in host memory. */
final class HostTensor {
  private static final ValueLayout.OfInt INT =
      ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfShort SHORT =
      ValueLayout.JAVA_SHORT.withOrder(ByteOrder.LITTLE_ENDIAN);

  private final MemorySegment memory;
  private final DType dtype;
  private final long columns;

  @SuppressWarnings("restricted") // The address is of memory that the rank allocated, of this size.
  HostTensor(Tensor tensor) {
    long bytes = tensor.rows() * tensor.pitch();
    this.memory =
        bytes == 0
            ? MemorySegment.NULL
            : MemorySegment.ofAddress(tensor.address()).reinterpret(bytes);
    this.dtype = tensor.dtype();
    this.columns = tensor.columns();
  }

  MemorySegment memory() {
    return memory;
  }

  MemorySegment row(long row) {
    return memory.asSlice(row * columns * dtype.bytes(), columns * dtype.bytes());
  }

  float get(long row, long column) {
    long index = row * columns + column;
    return dtype.decode(
        dtype.bytes() == Integer.BYTES
            ? memory.getAtIndex(INT, index)
            : memory.getAtIndex(SHORT, index));
  }

  void put(long row, long column, double value) {
    long index = row * columns + column;
    int bits = dtype.encode((float) value);
    if (dtype.bytes() == Integer.BYTES) {
      memory.setAtIndex(INT, index, bits);
    } else {
      memory.setAtIndex(SHORT, index, (short) bits);
    }
  }
}
