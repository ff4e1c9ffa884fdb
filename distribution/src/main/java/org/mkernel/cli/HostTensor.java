package org.mkernel.cli;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.function.Consumer;
import org.mkernel.api.DType;
import org.mkernel.api.Tensor;

/**
 * The elements of a tensor, wherever it lies: a block of rows at a time is copied to the host. Made
 * for access row by row; used by one thread at a time.
 */
final class HostTensor {
  private static final long BLOCK_BYTES = 4 << 20;

  private static final ValueLayout.OfInt INT =
      ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfShort SHORT =
      ValueLayout.JAVA_SHORT.withOrder(ByteOrder.LITTLE_ENDIAN);

  private final Tensor tensor;
  private final DType dtype;
  private final long rowBytes;
  private final long blockRows;
  private final MemorySegment block;
  private long first;
  private long loaded;
  private boolean changed;

  HostTensor(Tensor tensor) {
    this.tensor = tensor;
    this.dtype = tensor.dtype();
    this.rowBytes = tensor.pitch();
    this.blockRows = Math.clamp(BLOCK_BYTES / Math.max(1, rowBytes), 1, Math.max(1, tensor.rows()));
    this.block = Arena.ofAuto().allocate(blockRows * rowBytes, Long.BYTES);
  }

  /** The bytes of a row, until another row is asked for. */
  MemorySegment row(long row) {
    if (row < first || row >= first + loaded) {
      load(row);
    }
    return block.asSlice((row - first) * rowBytes, rowBytes);
  }

  private void load(long row) {
    flush();
    loaded = 0;
    long count = Math.min(blockRows, tensor.rows() - row);
    tensor.read(row * rowBytes, block.asSlice(0, count * rowBytes));
    first = row;
    loaded = count;
  }

  float get(long row, long column) {
    MemorySegment elements = row(row);
    return dtype.decode(
        dtype.bytes() == Integer.BYTES
            ? elements.getAtIndex(INT, column)
            : elements.getAtIndex(SHORT, column));
  }

  /** Sets an element, for the tensor at the next {@link #flush}. */
  void put(long row, long column, double value) {
    MemorySegment elements = row(row);
    int bits = dtype.encode((float) value);
    if (dtype.bytes() == Integer.BYTES) {
      elements.setAtIndex(INT, column, bits);
    } else {
      elements.setAtIndex(SHORT, column, (short) bits);
    }
    changed = true;
  }

  /** Writes what was put to the tensor. */
  void flush() {
    if (changed) {
      tensor.write(first * rowBytes, block.asSlice(0, loaded * rowBytes));
      changed = false;
    }
  }

  /** Sets every byte. */
  void fill(byte value) {
    block.fill(value);
    changed = false;
    loaded = 0;
    for (long row = 0; row < tensor.rows(); row += blockRows) {
      long count = Math.min(blockRows, tensor.rows() - row);
      tensor.write(row * rowBytes, block.asSlice(0, count * rowBytes));
    }
  }

  /** Hands out all bytes, in order. */
  void forEachBlock(Consumer<MemorySegment> each) {
    for (long row = 0; row < tensor.rows(); row += blockRows) {
      load(row);
      each.accept(block.asSlice(0, loaded * rowBytes));
    }
  }
}
