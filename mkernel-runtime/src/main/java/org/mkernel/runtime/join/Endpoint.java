package org.mkernel.runtime.join;

import org.mkernel.api.Failure;
import org.mkernel.api.UsageException;

/**
 * Where rank 0 listens.
 *
 * @param host a name, or an IPv4 or IPv6 address without brackets
 * @param port 1 … 65535
 */
public record Endpoint(String host, int port) {
  private static final int MAX_PORT = 65535;

  /** Checks both. */
  public Endpoint {
    if (host.isBlank() || port < 1 || port > MAX_PORT) {
      throw new UsageException(
          "host \"%s\" and port %d; a name or address and 1 to %d are needed"
              .formatted(host, port, MAX_PORT));
    }
  }

  /**
   * Reads {@code host:port}; an IPv6 address stands in brackets.
   *
   * @param variable where the text comes from, for messages
   * @param text the text
   * @return host and port
   * @throws UsageException when it is neither
   */
  static Endpoint parse(String variable, String text) {
    int colon = text.lastIndexOf(':');
    String host = colon < 0 ? "" : text.substring(0, colon);
    boolean bracketed = host.startsWith("[") && host.endsWith("]");
    if (bracketed) {
      host = host.substring(1, host.length() - 1);
    }
    boolean plain = bracketed || host.indexOf(':') < 0;
    try {
      int port = Integer.parseInt(text.substring(colon + 1));
      if (plain && !host.isBlank() && port >= 1 && port <= MAX_PORT) {
        return new Endpoint(host, port);
      }
    } catch (NumberFormatException e) {
      // Reported below, with the text.
    }
    throw new UsageException(
        "%s is \"%s\"; host:port is needed, port from 1 to %d".formatted(variable, text, MAX_PORT),
        Failure.remedy(
            "set %s as in node0:12345 or [fd00::1]:12345, alike for all ranks"
                .formatted(variable)));
  }

  @Override
  public String toString() {
    return (host.indexOf(':') < 0 ? host : "[" + host + "]") + ":" + port;
  }
}
