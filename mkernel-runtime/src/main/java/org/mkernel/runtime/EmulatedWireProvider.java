package org.mkernel.runtime;

import java.util.List;
import org.mkernel.api.Availability;
import org.mkernel.api.spi.OptionSpec;
import org.mkernel.api.spi.Port;
import org.mkernel.api.spi.TransportProvider;

/**
 * A network adapter inside this process: several nodes without a network. It copies bytes between
 * ranks as an adapter would, at a bandwidth and latency of choice, with faults of choice, and with
 * an adversary that does all that a network is allowed to do.
 */
public final class EmulatedWireProvider implements TransportProvider {
  static final String NAME = "emulated";

  /** Makes the provider; found as a service. */
  public EmulatedWireProvider() {}

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
    return 1000;
  }

  @Override
  public boolean emulated() {
    return true;
  }

  @Override
  public List<OptionSpec> options() {
    return EmulatedOptions.SPECS;
  }

  @Override
  public Availability availability() {
    return new Availability.Available("needs all ranks in one process");
  }

  @Override
  public Port open(Context context) {
    return new EmulatedWire(
        context, EmulatedOptions.parse(context.options(), context.topology().size()));
  }
}
