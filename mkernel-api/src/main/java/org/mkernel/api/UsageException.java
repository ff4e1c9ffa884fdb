package org.mkernel.api;

import org.jspecify.annotations.Nullable;

/** The caller asked for something that cannot be: a bad value, shape, order or combination. */
public final class UsageException extends MKernelException {
  private static final long serialVersionUID = 1L;

  /**
   * Makes an exception of which the message says all.
   *
   * @param message what happened
   */
  public UsageException(String message) {
    this(message, Failure.UNKNOWN, null);
  }

  /**
   * Makes an exception.
   *
   * @param message what happened
   * @param failure its parts
   */
  public UsageException(String message, Failure failure) {
    this(message, failure, null);
  }

  /**
   * Makes an exception.
   *
   * @param message what happened
   * @param failure its parts
   * @param cause what led to it
   */
  public UsageException(String message, Failure failure, @Nullable Throwable cause) {
    super(message, failure, cause);
  }

  @Override
  public UsageException copy() {
    return new UsageException(String.valueOf(getMessage()), failure(), this);
  }
}
