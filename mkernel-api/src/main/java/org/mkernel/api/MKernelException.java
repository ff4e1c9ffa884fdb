package org.mkernel.api;

import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * What every failure of mkernel is a kind of. The message says all; {@link #failure()} its parts.
 */
public abstract class MKernelException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final transient @Nullable Failure failure;

  /**
   * Makes an exception.
   *
   * @param message what happened, with the bad value and the allowed ones
   * @param failure its parts
   * @param cause what led to it
   */
  protected MKernelException(String message, Failure failure, @Nullable Throwable cause) {
    super(Objects.requireNonNull(message, "message"), cause);
    this.failure = Objects.requireNonNull(failure, "failure");
  }

  /**
   * The parts of what happened.
   *
   * @return rank, peer, operation, task, native code and remedy, each as far as it is known
   */
  public final Failure failure() {
    return failure == null ? Failure.UNKNOWN : failure;
  }

  /**
   * The same failure for another thread to throw, with this one as its cause.
   *
   * @return an exception of the same class, message and parts
   */
  public abstract MKernelException copy();
}
