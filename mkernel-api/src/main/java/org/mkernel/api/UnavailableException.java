package org.mkernel.api;

import org.jspecify.annotations.Nullable;

/** Something is not there on this machine or in this image: a plug-in, a device, a library. */
public final class UnavailableException extends MKernelException {
  private static final long serialVersionUID = 1L;

  /**
   * Makes an exception of which the message says all.
   *
   * @param message what happened
   */
  public UnavailableException(String message) {
    this(message, Failure.UNKNOWN, null);
  }

  /**
   * Makes an exception.
   *
   * @param message what happened
   * @param failure its parts
   */
  public UnavailableException(String message, Failure failure) {
    this(message, failure, null);
  }

  /**
   * Makes an exception.
   *
   * @param message what happened
   * @param failure its parts
   * @param cause what led to it
   */
  public UnavailableException(String message, Failure failure, @Nullable Throwable cause) {
    super(message, failure, cause);
  }

  @Override
  public UnavailableException copy() {
    return new UnavailableException(String.valueOf(getMessage()), failure(), this);
  }
}
