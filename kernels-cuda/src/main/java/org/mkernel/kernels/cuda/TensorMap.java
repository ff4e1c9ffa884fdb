package org.mkernel.kernels.cuda;

import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import org.bytedeco.cuda.cudart.CUtensorMap;
import org.bytedeco.cuda.global.cudart;
import org.mkernel.api.DType;
import org.mkernel.api.DeviceException;
import org.mkernel.api.Failure;

/** What the copy engine knows of a matrix in global memory: 128 bytes, which kernels read. */
final class TensorMap {
  /** The size of a map, and what it must be aligned to in memory of the host. */
  static final int BYTES = 128;

  private TensorMap() {}

  /** How rows of a box lie in shared memory. */
  enum Swizzle {
    NONE(cudart.CU_TENSOR_MAP_SWIZZLE_NONE),
    BYTES_128(cudart.CU_TENSOR_MAP_SWIZZLE_128B);

    private final int code;

    Swizzle(int code) {
      this.code = code;
    }
  }

  /**
   * Encodes a map; the context is current. What lies outside of the matrix is read as zero, and not
   * written.
   *
   * @param slot where to: {@link #BYTES} of native memory, aligned to as many
   * @param dtype type of the elements
   * @param address of the first element, a multiple of 16
   * @param extents of the matrix in elements, innermost first, 2 or 3 of them
   * @param strides in bytes from an element to the next along each but the innermost extent,
   *     multiples of 16
   * @param box the part that one copy moves, in elements, innermost first
   * @param swizzle how its rows lie in shared memory
   * @throws DeviceException when the driver can't encode it
   */
  static void encode(
      MemorySegment slot,
      DType dtype,
      long address,
      long[] extents,
      long[] strides,
      int[] box,
      Swizzle swizzle) {
    if (!slot.isNative() || slot.byteSize() < BYTES || slot.address() % BYTES != 0) {
      throw new IllegalArgumentException("a tensor map in " + slot);
    }
    int[] steps = new int[extents.length];
    Arrays.fill(steps, 1);
    int code =
        cudart.cuTensorMapEncodeTiled(
            new CUtensorMap(new Address(slot.address())),
            type(dtype),
            extents.length,
            new Address(address),
            extents,
            strides,
            box,
            steps,
            cudart.CU_TENSOR_MAP_INTERLEAVE_NONE,
            swizzle.code,
            cudart.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
            cudart.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (code != cudart.CUDA_SUCCESS) {
      throw new DeviceException(
          "the driver can't describe %s at 0x%x, extents %s, strides %s, box %s to the copy engine: %s"
              .formatted(
                  dtype.label(),
                  address,
                  Arrays.toString(extents),
                  Arrays.toString(strides),
                  Arrays.toString(box),
                  Driver.name(code)),
          Failure.remedy(
                  "the address and the strides must be multiples of 16 bytes, extents at least 1")
              .withNativeCode(code));
    }
  }

  private static int type(DType dtype) {
    return switch (dtype) {
      case F32 -> cudart.CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
      case F16 -> cudart.CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
      case BF16 -> cudart.CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    };
  }
}
