package org.mkernel.kernels.cuda;

import java.util.ArrayList;
import java.util.List;
import org.mkernel.api.DType;

/** The programs that are compiled when mkernel is built, and shipped. */
final class StockKernels {
  static final String ARCHITECTURE = "sm_90a";

  /** The types of products. */
  static final List<DType> TYPES = List.of(DType.BF16, DType.F16);

  private StockKernels() {}

  /**
   * The interpreter.
   *
   * @param dtype type of the operands of its products
   * @param transposedB whether rows of B are columns of the product
   */
  static CudaProgram interpreter(DType dtype, boolean transposedB) {
    return DeviceSources.program(
        "interpreter.cu",
        ARCHITECTURE,
        List.of(
            "-DMKERNEL_BF16=" + (dtype == DType.BF16 ? 1 : 0),
            "-DMKERNEL_TRANSPOSED=" + (transposedB ? 1 : 0)));
  }

  /** All of them. */
  static List<CudaProgram> all() {
    List<CudaProgram> all = new ArrayList<>();
    for (DType dtype : TYPES) {
      all.add(interpreter(dtype, false));
      all.add(interpreter(dtype, true));
    }
    return all;
  }
}
