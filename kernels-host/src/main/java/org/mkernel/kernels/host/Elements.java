package org.mkernel.kernels.host;

import org.mkernel.api.DType;

/** Elements of tensors by address, one by one or converted by rows. */
final class Elements {
  private Elements() {}

  static float get(DType dtype, long address) {
    return dtype == DType.F32
        ? Memory.ALL.get(Memory.FLOAT, address)
        : dtype.decode(Memory.ALL.get(Memory.SHORT, address));
  }

  static void put(DType dtype, long address, float value) {
    if (dtype == DType.F32) {
      Memory.ALL.set(Memory.FLOAT, address, value);
    } else {
      Memory.ALL.set(Memory.SHORT, address, (short) dtype.encode(value));
    }
  }

  /**
   * Converts 16-bit rows to packed fp32. Each type has a loop of its own, so that it vectorises.
   */
  static void widen(DType dtype, long from, long pitch, long rows, long columns, long to) {
    for (long row = 0; row < rows; row++) {
      long in = from + row * pitch;
      long out = to + row * columns * Float.BYTES;
      if (dtype == DType.BF16) {
        for (long i = 0; i < columns; i++) {
          int bits = Memory.ALL.get(Memory.SHORT, in + 2 * i) << 16;
          Memory.ALL.set(Memory.FLOAT, out + 4 * i, Float.intBitsToFloat(bits));
        }
      } else {
        for (long i = 0; i < columns; i++) {
          float value = Float.float16ToFloat(Memory.ALL.get(Memory.SHORT, in + 2 * i));
          Memory.ALL.set(Memory.FLOAT, out + 4 * i, value);
        }
      }
    }
  }
}
