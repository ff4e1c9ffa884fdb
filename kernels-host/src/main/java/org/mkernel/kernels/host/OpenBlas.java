package org.mkernel.kernels.host;

import org.bytedeco.javacpp.FloatPointer;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.openblas.global.openblas_nolapack;
import org.mkernel.api.Availability;
import org.mkernel.api.Failure;
import org.mkernel.api.UnavailableException;
import org.mkernel.api.UsageException;

/** Matrix products by OpenBLAS, each by the thread that asks for it. One per lane. */
final class OpenBlas {
  private static final int ROW_MAJOR = 101;
  private static final int NO_TRANSPOSE = 111;
  private static final int TRANSPOSE = 112;

  private static final String REMEDY =
      "put mkernel-natives-linux-x86_64 on the module path or class path, and grant native access to"
          + " org.bytedeco.javacpp and org.bytedeco.openblas";

  private final Address a = new Address();
  private final Address b = new Address();
  private final Address c = new Address();
  private final int longest;

  OpenBlas() {
    this(Integer.MAX_VALUE);
  }

  /**
   * Makes one that splits products so that no extent exceeds a limit: those of OpenBLAS are ints.
   */
  OpenBlas(int longest) {
    if (availability() instanceof Availability.Unavailable missing) {
      throw new UnavailableException(missing.reason(), Failure.remedy(missing.remedy()));
    }
    this.longest = longest;
  }

  /** Loads the library, the first time. */
  static Availability availability() {
    return Library.AVAILABILITY;
  }

  /**
   * C = A·B + beta·C in fp32; A is m × k, B is k × n or, transposed, n × k; strides in elements.
   */
  void multiply(
      boolean transposeB,
      long m,
      long n,
      long k,
      long addressOfA,
      long strideA,
      long addressOfB,
      long strideB,
      float beta,
      long addressOfC,
      long strideC) {
    for (long i = 0; i < m; i += longest) {
      int rows = (int) Math.min(longest, m - i);
      for (long j = 0; j < n; j += longest) {
        int columns = (int) Math.min(longest, n - j);
        for (long l = 0; l < k; l += longest) {
          int depth = (int) Math.min(longest, k - l);
          a.set(addressOfA + (i * strideA + l) * Float.BYTES);
          b.set(addressOfB + (transposeB ? j * strideB + l : l * strideB + j) * Float.BYTES);
          c.set(addressOfC + (i * strideC + j) * Float.BYTES);
          openblas_nolapack.cblas_sgemm(
              ROW_MAJOR,
              NO_TRANSPOSE,
              transposeB ? TRANSPOSE : NO_TRANSPOSE,
              rows,
              columns,
              depth,
              1f,
              a,
              leading(rows, depth, strideA),
              b,
              transposeB ? leading(columns, depth, strideB) : leading(depth, columns, strideB),
              l == 0 ? beta : 1f,
              c,
              leading(rows, columns, strideC));
        }
      }
    }
  }

  /** The leading dimension of a block; that of a single row is never used, but checked. */
  private static int leading(int rows, int columns, long stride) {
    if (rows == 1) {
      return columns;
    }
    if (stride < columns || stride > Integer.MAX_VALUE) {
      throw new UsageException(
          "rows of %d elements are %d elements apart; OpenBLAS needs at least as many as they have"
                  .formatted(columns, stride)
              + " and at most "
              + Integer.MAX_VALUE);
    }
    return (int) stride;
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

  /** Loads the library once; what went wrong is kept as a value, with the root cause. */
  private static final class Library {
    static final Availability AVAILABILITY = load();

    private Library() {}

    private static Availability load() {
      try {
        // Lanes are the threads: a product must not start more.
        openblas_nolapack.blas_set_num_threads(1);
        return new Availability.Available("OpenBLAS for products");
      } catch (LinkageError | RuntimeException e) {
        Throwable root = e;
        for (Throwable next = root.getCause(); next != null; next = root.getCause()) {
          root = next;
        }
        return new Availability.Unavailable("OpenBLAS can't be loaded: " + root, REMEDY);
      }
    }
  }
}
