package org.mkernel.transport.rdma;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;
import org.mkernel.api.Availability;
import org.mkernel.api.spi.OptionSpec;
import org.mkernel.api.spi.Port;
import org.mkernel.api.spi.TransportProvider;

/** RDMA writes over InfiniBand and RoCE, through libibverbs. */
public final class RdmaTransport implements TransportProvider {
  static final String NAME = "rdma";

  private final Sysfs sysfs;
  private final Path proc;
  private final Supplier<Availability> library;

  /** Makes the provider; found as a service. */
  public RdmaTransport() {
    this(new Sysfs(Path.of("/sys"), Path.of("/dev")), Path.of("/proc"), VerbsLibrary::availability);
  }

  RdmaTransport(Sysfs sysfs, Path proc, Supplier<Availability> library) {
    this.sysfs = sysfs;
    this.proc = proc;
    this.library = library;
  }

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
    return 100;
  }

  @Override
  public List<OptionSpec> options() {
    return RdmaOptions.SPECS;
  }

  @Override
  public Availability availability() {
    List<Sysfs.AdapterFacts> adapters = sysfs.adapters();
    if (adapters.isEmpty()) {
      return new Availability.Unavailable(
          "no RDMA adapter: %s is empty".formatted(sysfs.sys().resolve("class/infiniband")),
          "load the adapter's kernel driver (and ib_uverbs); in a container pass /dev/infiniband");
    }
    if (adapters.stream().allMatch(adapter -> adapter.activePort().isEmpty())) {
      return new Availability.Unavailable(
          "no port is active: " + adapters, "look at cables and at the state shown by ibv_devinfo");
    }
    Optional<Availability> files = deviceFiles(adapters);
    if (files.isPresent()) {
      return files.get();
    }
    MemoryLimit limit = MemoryLimit.of(proc);
    if (limit.isTooLow()) {
      return new Availability.Unavailable(
          "%s; at least %d KiB are needed".formatted(limit, MemoryLimit.LEAST >> 10),
          MemoryLimit.REMEDY);
    }
    return library.get() instanceof Availability.Unavailable missing
        ? missing
        : new Availability.Available("%s, %s".formatted(adapters, limit));
  }

  /** Says why no adapter can be opened, when none can. */
  private Optional<Availability> deviceFiles(List<Sysfs.AdapterFacts> adapters) {
    for (Sysfs.AdapterFacts adapter : adapters) {
      Optional<Path> file = sysfs.deviceFile(adapter.name());
      if (file.isPresent() && Files.isReadable(file.get()) && Files.isWritable(file.get())) {
        return Optional.empty();
      }
    }
    String name = adapters.getFirst().name();
    Optional<Path> file = sysfs.deviceFile(name);
    return Optional.of(
        file.isEmpty()
            ? new Availability.Unavailable(
                "adapter %s has no device file".formatted(name), "load the kernel module ib_uverbs")
            : new Availability.Unavailable(
                "%s of adapter %s is missing or may not be opened".formatted(file.get(), name),
                "pass /dev/infiniband into the container, and join the group that owns it"));
  }

  @Override
  public Port open(Context context) {
    return RdmaWire.open(context, sysfs, proc);
  }
}
