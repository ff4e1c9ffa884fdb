package org.mkernel.kernels.host;

import org.mkernel.api.DType;

/** Elements of tensors, one by one. */
final class TestMemory {
  private TestMemory() {}

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
}
