package org.mkernel.transport.tcp;

import java.util.List;
import org.mkernel.api.Availability;
import org.mkernel.api.spi.OptionSpec;
import org.mkernel.api.spi.Port;
import org.mkernel.api.spi.TransportProvider;

/** The wire over sockets. */
public final class TcpTransport implements TransportProvider {
  static final String NAME = "tcp";

  /** For {@link java.util.ServiceLoader}. */
  public TcpTransport() {}

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public Reach reach() {
    return Reach.NETWORK;
  }

  @Override
  public int cost() {
    return 500;
  }

  @Override
  public List<OptionSpec> options() {
    return TcpOptions.SPECS;
  }

  @Override
  public Availability availability() {
    return new Availability.Available("sockets");
  }

  @Override
  public Port open(Context context) {
    TcpOptions options = TcpOptions.parse(context.options());
    return TcpWire.open(context, options);
  }
}
