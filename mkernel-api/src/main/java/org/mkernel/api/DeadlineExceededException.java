package org.mkernel.api;

import org.jspecify.annotations.Nullable;

/** Something took longer than the caller allows, and no rank is known to be to blame. */
public final class DeadlineExceededException extends MKernelException {
  private static final long serialVersionUID = 1L;

  /**
   * Makes an exception of which the message says all.
   *
   * @param message what happened
   */
  public DeadlineExceededException(String message) {
    this(message, Failure.UNKNOWN, null);
  }

  /**
   * Makes an exception.
   *
   * @param message what happened
   * @param failure its parts
   */
  public DeadlineExceededException(String message, Failure failure) {
    this(message, failure, null);
  }

  /**
   * Makes an exception.
   *
   * @param message what happened
   * @param failure its parts
   * @param cause what led to it
   */
  public DeadlineExceededException(String message, Failure failure, @Nullable Throwable cause) {
    super(message, failure, cause);
  }

  @Override
  public DeadlineExceededException copy() {
    return new DeadlineExceededException(String.valueOf(getMessage()), failure(), this);
  }
}
