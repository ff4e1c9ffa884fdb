package org.mkernel.kernels.host;

import java.lang.foreign.MemorySegment;
import org.mkernel.api.DType;

/**
 * A piece of a row in fp32, in an array of the lane: conversions are loops over arrays, which the
 * compiler turns into vector instructions. Of one thread.
 */
final class Row {
  /** Elements of the longest piece: small enough for a first-level cache. */
  static final int LENGTH = 1024;

  final float[] values = new float[LENGTH];
  private final short[] halves = new short[LENGTH];

  /** How many of the elements from the given one on fit in a piece. */
  static int length(long from, long end) {
    return (int) Math.min(LENGTH, end - from);
  }

  /** Reads elements, exactly. */
  void load(DType dtype, long address, int count) {
    if (dtype == DType.F32) {
      MemorySegment.copy(Memory.ALL, Memory.FLOAT, address, values, 0, count);
      return;
    }
    MemorySegment.copy(Memory.ALL, Memory.SHORT, address, halves, 0, count);
    if (dtype == DType.BF16) {
      for (int i = 0; i < count; i++) {
        values[i] = Float.intBitsToFloat(halves[i] << 16);
      }
    } else {
      for (int i = 0; i < count; i++) {
        values[i] = Float.float16ToFloat(halves[i]);
      }
    }
  }

  /** Writes elements, rounded to nearest, ties to even. */
  void store(DType dtype, long address, int count) {
    if (dtype == DType.F32) {
      MemorySegment.copy(values, 0, Memory.ALL, Memory.FLOAT, address, count);
      return;
    }
    if (dtype == DType.BF16) {
      for (int i = 0; i < count; i++) {
        halves[i] = bfloat(Float.floatToRawIntBits(values[i]));
      }
    } else {
      for (int i = 0; i < count; i++) {
        halves[i] = Float.floatToFloat16(values[i]);
      }
    }
    MemorySegment.copy(halves, 0, Memory.ALL, Memory.SHORT, address, count);
  }

  /** As {@link DType#encode}, without branches: the mask is all ones for a NaN, else zero. */
  private static short bfloat(int bits) {
    int nan = (0x7f800000 - (bits & 0x7fffffff)) >> 31;
    int rounded = (bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16;
    return (short) ((rounded & ~nan) | (((bits >>> 16) | 0x40) & nan));
  }

  /** Adds another piece. */
  void add(Row other, int count) {
    for (int i = 0; i < count; i++) {
      values[i] += other.values[i];
    }
  }
}
