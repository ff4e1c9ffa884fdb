package org.mkernel.kernels.cuda;

import org.bytedeco.cuda.cublas.cublasContext;
import org.bytedeco.cuda.global.cublas;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.FloatPointer;
import org.mkernel.api.Availability;
import org.mkernel.api.DType;
import org.mkernel.api.DeviceException;
import org.mkernel.api.Failure;

/** cuBLAS on one GPU: the yardstick. Used by one thread at a time. */
final class Cublas implements AutoCloseable {
  private final CudaContext context;
  private final cublasContext handle = new cublasContext();
  private final StreamHandle stream = new StreamHandle();
  private final FloatPointer one = new FloatPointer(1f);
  private final FloatPointer zero = new FloatPointer(0f);

  Cublas(CudaContext context) {
    this.context = context;
    try (CudaContext.Scope _ = context.enter()) {
      check(cublas.cublasCreate_v2(handle), "cublasCreate");
      // Partial sums stay in fp32, as ours do.
      check(
          cublas.cublasSetMathMode(handle, cublas.CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION),
          "cublasSetMathMode");
    }
  }

  /** Loads the library, the first time. */
  static Availability availability() {
    return Library.AVAILABILITY;
  }

  /**
   * A product of matrices by rows, C = A·B, summed in fp32.
   *
   * @param dtype type of all elements
   * @param transposed whether B is n × k
   * @param m rows of A and C
   * @param n columns of C
   * @param k columns of A
   * @param a where A starts
   * @param strideOfA elements from a row of A to the next
   * @param b where B starts
   * @param strideOfB elements from a row of B to the next
   * @param c where C starts
   * @param strideOfC elements from a row of C to the next
   */
  record Product(
      DType dtype,
      boolean transposed,
      int m,
      int n,
      int k,
      Address a,
      int strideOfA,
      Address b,
      int strideOfB,
      Address c,
      int strideOfC) {}

  /** Names the stream of what follows. */
  void useStream(long address) {
    check(cublas.cublasSetStream_v2(handle, stream.at(address)), "cublasSetStream");
  }

  /** Puts a product into the stream. cuBLAS counts by columns: it is given Cᵀ = Bᵀ·Aᵀ. */
  void multiply(Product p) {
    int type = type(p.dtype());
    try (CudaContext.Scope _ = context.enter()) {
      check(
          cublas.cublasGemmEx(
              handle,
              p.transposed() ? cublas.CUBLAS_OP_T : cublas.CUBLAS_OP_N,
              cublas.CUBLAS_OP_N,
              p.n(),
              p.m(),
              p.k(),
              one,
              p.b(),
              type,
              p.strideOfB(),
              p.a(),
              type,
              p.strideOfA(),
              zero,
              p.c(),
              type,
              p.strideOfC(),
              cublas.CUBLAS_COMPUTE_32F,
              cublas.CUBLAS_GEMM_DEFAULT),
          "cublasGemmEx");
    }
  }

  private static int type(DType dtype) {
    return switch (dtype) {
      case F32 -> cudart.CUDA_R_32F;
      case F16 -> cudart.CUDA_R_16F;
      case BF16 -> cudart.CUDA_R_16BF;
    };
  }

  private static void check(int status, String call) {
    if (status != cublas.CUBLAS_STATUS_SUCCESS) {
      try (BytePointer name = cublas.cublasGetStatusString(status)) {
        throw new DeviceException(
            "%s failed: %s (%d)".formatted(call, name.getString(), status),
            Failure.remedy("CUBLAS_LOGINFO_DBG=1 makes cuBLAS say more").withNativeCode(status));
      }
    }
  }

  @Override
  public void close() {
    try (CudaContext.Scope _ = context.enter();
        one;
        zero) {
      check(cublas.cublasDestroy_v2(handle), "cublasDestroy");
    }
  }

  /** Loads the library once; what went wrong is kept as a value, with the root cause. */
  private static final class Library {
    static final Availability AVAILABILITY = load();

    private Library() {}

    private static Availability load() {
      try {
        int[] version = new int[3];
        int[] part = new int[1];
        for (int i = 0; i < version.length; i++) {
          check(cublas.cublasGetProperty(i, part), "cublasGetProperty");
          version[i] = part[0];
        }
        return new Availability.Available(
            "cuBLAS %d.%d.%d".formatted(version[0], version[1], version[2]));
      } catch (LinkageError | RuntimeException e) {
        return new Availability.Unavailable(
            "cuBLAS can't be loaded: " + RootCause.of(e),
            "put the folder of libcublas.so.13 and libcublasLt.so.13 of a CUDA 13 on"
                + " LD_LIBRARY_PATH");
      }
    }
  }
}
