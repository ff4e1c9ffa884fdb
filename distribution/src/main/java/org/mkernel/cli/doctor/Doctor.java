package org.mkernel.cli.doctor;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.function.BiConsumer;
import java.util.function.Supplier;
import org.mkernel.api.Config;
import org.mkernel.api.PluginInfo;
import org.mkernel.runtime.join.Launch;

/** Examines a machine for what makes operations fail, hang or crawl. */
public final class Doctor {
  private static final List<Probe> PROBES =
      List.of(
          new Probe("java", JavaProbes::java),
          new Probe("modules", JavaProbes::modules),
          new Probe("providers", JavaProbes::providers),
          new Probe("fallback", JavaProbes::fallback),
          new Probe("launcher", LaunchProbes::launcher),
          new Probe("rendezvous", LaunchProbes::rendezvous),
          new Probe("secret", LaunchProbes::secret),
          new Probe("ports", LaunchProbes::ports),
          new Probe("kernel", SystemProbes::kernel),
          new Probe("container", SystemProbes::container),
          new Probe("clock", SystemProbes::clock),
          new Probe("cpus", SystemProbes::cpus),
          new Probe("cpu-governor", SystemProbes::governor),
          new Probe("memory", MemoryProbes::memory),
          new Probe("shared-memory", MemoryProbes::sharedMemory),
          new Probe("shm", MemoryProbes::shm),
          new Probe("huge-pages", MemoryProbes::hugePages),
          new Probe("lock-limit", MemoryProbes::lockLimit),
          new Probe("open-files", MemoryProbes::openFiles),
          new Probe("threads", MemoryProbes::threads),
          new Probe("rdma-adapters", RdmaProbes::adapters),
          new Probe("rdma-addresses", RdmaProbes::addresses),
          new Probe("rdma-mtu", RdmaProbes::mtu),
          new Probe("rdma-congestion", RdmaProbes::congestion),
          new Probe("rdma-losses", RdmaProbes::losses),
          new Probe("rdma-locality", RdmaProbes::locality),
          new Probe("pci-acs", PciProbes::acs),
          new Probe("iommu", PciProbes::iommu),
          new Probe("gpu-driver", GpuProbes::driver),
          new Probe("gpu-mode", GpuProbes::mode),
          new Probe("gpu-others", GpuProbes::others),
          new Probe("gpu-links", GpuProbes::links),
          new Probe("gpu-peer-memory", GpuProbes::peerMemory),
          new Probe("kernel-cache", GpuProbes::kernelCache));

  private record Probe(String name, BiConsumer<Machine, Findings> look) {}

  private final Machine machine;

  Doctor(Machine machine) {
    this.machine = machine;
  }

  /**
   * A doctor for the machine that this process runs on.
   *
   * @param root the folder that holds {@code proc}, {@code sys} and the others
   * @param config settings
   * @param providers what was found when mkernel was opened; throws what opening it threw
   * @return a new doctor
   */
  public static Doctor of(Path root, Config config, Supplier<List<PluginInfo>> providers) {
    return new Doctor(
        new Machine(
            root,
            Launch.environment(config),
            config,
            JavaFacts.ofThisProcess(),
            Programs.real(),
            providers));
  }

  /** The names of all probes. */
  static List<String> probes() {
    return PROBES.stream().map(Probe::name).toList();
  }

  /**
   * Runs all probes.
   *
   * @return what they found, worst first
   */
  public List<Finding> examine() {
    List<Finding> all = new ArrayList<>();
    PROBES.forEach(probe -> all.addAll(examine(probe)));
    all.sort(Comparator.comparing(Finding::severity));
    return all;
  }

  /** Runs one probe. */
  List<Finding> examine(String name) {
    return examine(
        PROBES.stream().filter(probe -> probe.name().equals(name)).findFirst().orElseThrow());
  }

  private List<Finding> examine(Probe probe) {
    Findings findings = new Findings(probe.name());
    try {
      probe.look().accept(machine, findings);
    } catch (RuntimeException e) {
      // One probe that fails must not hide what the others see.
      findings.warning(
          "this probe failed: " + e, "a fault of mkernel", "report it, with the output of --json");
    }
    return findings.all();
  }
}
