package org.mkernel.kernels.cuda;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.mkernel.api.DType;

/** The tensor maps of a plan, each matrix described once; slots of a buffer follow each other. */
final class TensorMaps {
  /**
   * A matrix of 16-bit elements.
   *
   * @param address of slot 0, a multiple of 16
   * @param slotBytes from a slot to the next
   * @param depth slots
   * @param pitch bytes from a row to the next, a multiple of 16
   * @param columns elements of a row; none beyond is read or written
   * @param rows rows; none beyond is read or written
   * @param boxRows rows that one copy moves; it always moves 128 bytes of each
   */
  record Matrix(
      long address, long slotBytes, int depth, long pitch, long columns, long rows, int boxRows) {}

  private final DType dtype;
  private final Map<Matrix, Integer> indices = new HashMap<>();
  private final List<Matrix> matrices = new ArrayList<>();
  private int count;

  TensorMaps(DType dtype) {
    this.dtype = dtype;
  }

  /** The number of the map of slot 0. */
  int index(Matrix matrix) {
    Integer known = indices.get(matrix);
    if (known != null) {
      return known;
    }
    int index = count;
    indices.put(matrix, index);
    matrices.add(matrix);
    count += matrix.depth();
    return index;
  }

  /** The number of maps. */
  int count() {
    return count;
  }

  /** Writes all maps down, {@link TensorMap#BYTES} each. */
  MemorySegment encode(Arena arena) {
    MemorySegment all =
        arena.allocate((long) Math.max(1, count) * TensorMap.BYTES, TensorMap.BYTES);
    long at = 0;
    for (Matrix matrix : matrices) {
      for (int slot = 0; slot < matrix.depth(); slot++) {
        TensorMap.encode(
            all.asSlice(at, TensorMap.BYTES),
            dtype,
            matrix.address() + slot * matrix.slotBytes(),
            new long[] {matrix.columns(), matrix.rows()},
            new long[] {matrix.pitch()},
            new int[] {128 / dtype.bytes(), matrix.boxRows()},
            TensorMap.Swizzle.BYTES_128);
        at += TensorMap.BYTES;
      }
    }
    return all;
  }
}
