package org.mkernel.api;

import org.jspecify.annotations.Nullable;

/** A device failed, or a kernel running on it. */
public final class DeviceException extends MKernelException {
  private static final long serialVersionUID = 1L;

  /**
   * Makes an exception of which the message says all.
   *
   * @param message what happened
   */
  public DeviceException(String message) {
    this(message, Failure.UNKNOWN, null);
  }

  /**
   * Makes an exception.
   *
   * @param message what happened
   * @param failure its parts
   */
  public DeviceException(String message, Failure failure) {
    this(message, failure, null);
  }

  /**
   * Makes an exception.
   *
   * @param message what happened
   * @param failure its parts
   * @param cause what led to it
   */
  public DeviceException(String message, Failure failure, @Nullable Throwable cause) {
    super(message, failure, cause);
  }

  @Override
  public DeviceException copy() {
    return new DeviceException(String.valueOf(getMessage()), failure(), this);
  }
}
