package org.mkernel.api;

import org.jspecify.annotations.Nullable;

/** Ranks do not agree: other shapes, other schedules, another order of launches, other versions. */
public final class MismatchException extends MKernelException {
  private static final long serialVersionUID = 1L;

  /**
   * Makes an exception of which the message says all.
   *
   * @param message what happened
   */
  public MismatchException(String message) {
    this(message, Failure.UNKNOWN, null);
  }

  /**
   * Makes an exception.
   *
   * @param message what happened
   * @param failure its parts
   */
  public MismatchException(String message, Failure failure) {
    this(message, failure, null);
  }

  /**
   * Makes an exception.
   *
   * @param message what happened
   * @param failure its parts
   * @param cause what led to it
   */
  public MismatchException(String message, Failure failure, @Nullable Throwable cause) {
    super(message, failure, cause);
  }

  @Override
  public MismatchException copy() {
    return new MismatchException(String.valueOf(getMessage()), failure(), this);
  }
}
