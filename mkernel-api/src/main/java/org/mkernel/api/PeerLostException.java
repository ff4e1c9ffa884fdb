package org.mkernel.api;

import org.jspecify.annotations.Nullable;

/** Another rank is gone, or did not do its part within the deadline. The world is dead. */
public final class PeerLostException extends MKernelException {
  private static final long serialVersionUID = 1L;

  /**
   * Makes an exception of which the message says all.
   *
   * @param message what happened
   */
  public PeerLostException(String message) {
    this(message, Failure.UNKNOWN, null);
  }

  /**
   * Makes an exception.
   *
   * @param message what happened
   * @param failure its parts
   */
  public PeerLostException(String message, Failure failure) {
    this(message, failure, null);
  }

  /**
   * Makes an exception.
   *
   * @param message what happened
   * @param failure its parts
   * @param cause what led to it
   */
  public PeerLostException(String message, Failure failure, @Nullable Throwable cause) {
    super(message, failure, cause);
  }

  @Override
  public PeerLostException copy() {
    return new PeerLostException(String.valueOf(getMessage()), failure(), this);
  }
}
