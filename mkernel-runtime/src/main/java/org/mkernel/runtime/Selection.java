package org.mkernel.runtime;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.mkernel.api.Availability;
import org.mkernel.api.Config;
import org.mkernel.api.Failure;
import org.mkernel.api.OperationReport;
import org.mkernel.api.UnavailableException;
import org.mkernel.api.UsageException;
import org.mkernel.api.spi.DeviceProvider;
import org.mkernel.api.spi.TransportProvider;

/** Chooses a device and transports, and says why. There is no silent choice. */
final class Selection {
  private Selection() {}

  /**
   * A transport with the reason for it.
   *
   * @param provider the transport
   * @param report name, reason, emulated
   */
  record Transport(TransportProvider provider, OperationReport.Choice report) {
    private static Transport of(TransportProvider provider, String reason) {
      return new Transport(
          provider, new OperationReport.Choice(provider.name(), reason, provider.emulated()));
    }
  }

  static DeviceProvider device(Config config, Plugins plugins) {
    Optional<String> asked = config.option("device").filter(name -> !name.equals("auto"));
    if (asked.isPresent()) {
      DeviceProvider provider = plugins.device(asked.get());
      requireAvailable("device", provider.name(), provider.availability());
      return provider;
    }
    List<String> out = new ArrayList<>();
    for (DeviceProvider provider :
        plugins.devices().stream()
            .sorted(Comparator.comparingInt(DeviceProvider::preference).reversed())
            .toList()) {
      Availability availability = provider.availability();
      if (availability.isAvailable()) {
        return provider;
      }
      out.add(provider.name() + ": " + availability.describe());
    }
    throw new UnavailableException(
        "no device can be used" + (out.isEmpty() ? "; none was found" : ": " + out),
        Failure.remedy("put mkernel-kernels-host on the module path or class path"));
  }

  /**
   * Which transports can be used, seen from all ranks.
   *
   * @param processes how many processes the world has
   * @param missing by name of a transport, why it can't be used and where
   */
  record Reachable(int processes, Map<String, Availability> missing) {
    private Availability of(TransportProvider provider) {
      return missing.getOrDefault(provider.name(), provider.availability());
    }
  }

  static Transport intra(Config config, Plugins plugins, Reachable reachable) {
    return choose(
        "intra-transport",
        config,
        plugins,
        TransportProvider.Reach.NODE,
        "inside a node",
        reachable);
  }

  static Transport inter(Config config, Plugins plugins, Reachable reachable) {
    return choose(
        "transport", config, plugins, TransportProvider.Reach.NETWORK, "between nodes", reachable);
  }

  private static Transport choose(
      String option,
      Config config,
      Plugins plugins,
      TransportProvider.Reach reach,
      String where,
      Reachable reachable) {
    boolean oneProcess = reachable.processes() == 1 && reach == TransportProvider.Reach.NETWORK;
    Optional<String> asked = config.option(option).filter(name -> !name.equals("auto"));
    if (asked.isPresent()) {
      TransportProvider provider = plugins.transport(asked.get());
      if (provider.reach() != reach) {
        throw new UsageException(
            "option %s is \"%s\", a transport that does not work %s; allowed are %s"
                .formatted(
                    option,
                    asked.get(),
                    where,
                    plugins.transports().stream()
                        .filter(p -> p.reach() == reach)
                        .map(TransportProvider::name)
                        .toList()));
      }
      requireAvailable("transport", provider.name(), reachable.of(provider));
      if (provider.emulated() && reachable.processes() > 1) {
        throw new UsageException(
            "option %s is \"%s\", which works inside one process; the world has %d processes"
                .formatted(option, asked.get(), reachable.processes()));
      }
      return Transport.of(provider, "asked for by option " + option);
    }
    List<String> out = new ArrayList<>();
    for (TransportProvider provider :
        plugins.transports().stream()
            .filter(p -> p.reach() == reach)
            .sorted(Comparator.comparingInt(TransportProvider::cost))
            .toList()) {
      Availability availability = reachable.of(provider);
      if (provider.emulated() && reachable.processes() > 1) {
        out.add(provider.name() + ": it works inside one process");
      } else if (oneProcess && !provider.emulated()) {
        out.add(provider.name() + ": all nodes are in this process");
      } else if (availability.isAvailable()) {
        String reason =
            provider.emulated() ? "all nodes are in this process" : "the cheapest that reaches";
        return Transport.of(provider, out.isEmpty() ? reason : reason + "; not " + out);
      } else {
        out.add(provider.name() + ": " + availability.describe());
      }
    }
    throw new UnavailableException(
        "no transport works " + where + (out.isEmpty() ? "; none was found" : ": " + out),
        Failure.remedy("put a module that provides one on the module path or class path"));
  }

  private static void requireAvailable(String what, String name, Availability availability) {
    if (availability instanceof Availability.Unavailable u) {
      throw new UnavailableException(
          "%s %s can't be used: %s".formatted(what, name, u.reason()), Failure.remedy(u.remedy()));
    }
  }
}
