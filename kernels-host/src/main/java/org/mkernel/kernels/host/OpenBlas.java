package org.mkernel.kernels.host;

import org.bytedeco.javacpp.FloatPointer;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.openblas.global.openblas_nolapack;
import org.mkernel.api.Failure;
import org.mkernel.api.UnavailableException;

/** Matrix products by OpenBLAS, each by the thread that asks for it. One per lane. */
final class OpenBlas {
  private static final int ROW_MAJOR = 101;
  private static final int NO_TRANSPOSE = 111;
  private static final int TRANSPOSE = 112;

  private final Address a = new Address();
  private final Address b = new Address();
  private final Address c = new Address();

  OpenBlas() {
    if (!Library.PROBLEM.isEmpty()) {
      throw new UnavailableException(
          "OpenBLAS can't be loaded: " + Library.PROBLEM,
          Failure.remedy(
              "put mkernel-natives-linux-x86_64 on the module path or class path, and grant native"
                  + " access to org.bytedeco.javacpp and org.bytedeco.openblas"));
    }
  }

  static String describe() {
    return "OpenBLAS for products";
  }

  /**
   * C = A·B + beta·C in fp32; A is m × k, B is k × n or, transposed, n × k; strides in elements.
   */
  void multiply(
      boolean transposeB,
      int m,
      int n,
      int k,
      long addressOfA,
      int strideA,
      long addressOfB,
      int strideB,
      float beta,
      long addressOfC,
      int strideC) {
    a.set(addressOfA);
    b.set(addressOfB);
    c.set(addressOfC);
    openblas_nolapack.cblas_sgemm(
        ROW_MAJOR,
        NO_TRANSPOSE,
        transposeB ? TRANSPOSE : NO_TRANSPOSE,
        m,
        n,
        k,
        1f,
        a,
        strideA,
        b,
        strideB,
        beta,
        c,
        strideC);
  }

  /** A pointer that is made once and moved. */
  private static final class Address extends FloatPointer {
    Address() {
      super((Pointer) null);
    }

    void set(long value) {
      address = value;
    }
  }

  /** Loads the library once; what went wrong is kept as text, with the root cause. */
  private static final class Library {
    static final String PROBLEM = load();

    private Library() {}

    private static String load() {
      try {
        // Lanes are the threads: a product must not start more.
        openblas_nolapack.blas_set_num_threads(1);
        return "";
      } catch (LinkageError | RuntimeException e) {
        Throwable root = e;
        for (Throwable next = root.getCause(); next != null; next = root.getCause()) {
          root = next;
        }
        return String.valueOf(root.getMessage());
      }
    }
  }
}
