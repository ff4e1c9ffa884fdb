package org.mkernel.runtime.join;

import java.io.IOException;

/** What arrived is not what the protocol says. The connection is closed. */
final class ProtocolException extends IOException {
  private static final long serialVersionUID = 1L;

  ProtocolException(String message) {
    super(message);
  }
}
