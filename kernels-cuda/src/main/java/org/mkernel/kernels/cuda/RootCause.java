package org.mkernel.kernels.cuda;

/** Of a failure to load a library the last cause tells the truth: the first names a symptom. */
final class RootCause {
  private RootCause() {}

  static Throwable of(Throwable failure) {
    Throwable root = failure;
    for (Throwable next = root.getCause(); next != null; next = root.getCause()) {
      root = next;
    }
    return root;
  }
}
