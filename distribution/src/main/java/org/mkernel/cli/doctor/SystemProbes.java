package org.mkernel.cli.doctor;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.mkernel.cli.doctor.Finding.Evidence;

/** The kernel, and the processors that a process gets. */
final class SystemProbes {
  /** Variables that say how many ranks a launcher put on this node. */
  private static final String[] LOCAL_RANKS = {
    "OMPI_COMM_WORLD_LOCAL_SIZE", "LOCAL_WORLD_SIZE", "SLURM_NTASKS_PER_NODE", "MPI_LOCALNRANKS"
  };

  private static final Pattern RELEASE = Pattern.compile("^([0-9]{1,4})\\.([0-9]{1,4})");

  private SystemProbes() {}

  /** Whether the running kernel is at least of a release; true where it can't be told. */
  static boolean kernelIsAtLeast(Machine machine, int major, int minor) {
    Matcher release = RELEASE.matcher(machine.read("/proc/sys/kernel/osrelease").value());
    if (!release.find()) {
      return true;
    }
    int has = Integer.parseInt(release.group(1)) * 10_000 + Integer.parseInt(release.group(2));
    return has >= major * 10_000 + minor;
  }

  static void kernel(Machine machine, Findings out) {
    Reading release = machine.read("/proc/sys/kernel/osrelease");
    if (!release.isPresent()) {
      out.notApplicable("the kernel does not tell its release", release.evidence());
    } else if (!kernelIsAtLeast(machine, 3, 17)) {
      out.error(
          "Linux " + release.value(),
          "it has no files in memory without names, which ranks of several processes share",
          "use Linux 5.12 or newer",
          release.evidence());
    } else if (!kernelIsAtLeast(machine, 5, 12)) {
      out.warning(
          "Linux " + release.value(),
          "before 5.12 an adapter can't register the memory of GPUs by dma-buf",
          "use Linux 5.12 or newer",
          release.evidence());
    } else {
      out.ok("Linux " + release.value(), release.evidence());
    }
  }

  static void container(Machine machine, Findings out) {
    List<Evidence> signs = new ArrayList<>();
    for (String file : new String[] {"/.dockerenv", "/run/.containerenv"}) {
      if (machine.exists(file)) {
        signs.add(new Evidence(file, "there"));
      }
    }
    if (machine.variable("KUBERNETES_SERVICE_HOST").isPresent()) {
      signs.add(machine.variableEvidence("KUBERNETES_SERVICE_HOST"));
    }
    machine
        .read("/proc/1/cgroup")
        .lines()
        .filter(line -> line.matches(".*(docker|kubepods|containerd|libpod|lxc).*"))
        .findFirst()
        .ifPresent(line -> signs.add(new Evidence("/proc/1/cgroup", line)));
    if (signs.isEmpty()) {
      out.ok("no container", machine.read("/proc/1/cgroup").evidence());
    } else {
      out.ok(
          "a container: ranks share memory with those of the same container only",
          signs.toArray(Evidence[]::new));
    }
  }

  static void clock(Machine machine, Findings out) {
    String folder = "/sys/devices/system/clocksource/clocksource0/";
    Reading current = machine.read(folder + "current_clocksource");
    Evidence available = machine.read(folder + "available_clocksource").evidence();
    switch (current.value()) {
      case "" -> out.notApplicable("the kernel does not tell its clock", current.evidence());
      case "tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter", "xen" ->
          out.ok(current.value(), current.evidence(), available);
      default ->
          out.warning(
              "the clock is " + current.value(),
              "reading it takes a system call of a microsecond or more; each wait reads it",
              "boot with tsc=reliable if the machine's counters agree, or ask who runs the machine",
              current.evidence(),
              available);
    }
  }

  static void cpus(Machine machine, Findings out) {
    List<Evidence> evidence = new ArrayList<>();
    Reading status = machine.read("/proc/self/status");
    evidence.add(status.evidence("Cpus_allowed_list:"));
    double cpus = machine.allowedCpus().orElse(machine.java().processors());
    Optional<Quota> quota = quota(machine);
    if (quota.isPresent()) {
      evidence.add(quota.get().evidence());
      cpus = Math.min(cpus, quota.get().cpus());
    }
    OptionalLong ranks = OptionalLong.empty();
    for (String variable : LOCAL_RANKS) {
      ranks = machine.variable(variable).map(Reading::number).orElse(OptionalLong.empty());
      if (ranks.isPresent()) {
        evidence.add(machine.variableEvidence(variable));
        break;
      }
    }
    Evidence[] all = evidence.toArray(Evidence[]::new);
    String has = cpus == Math.rint(cpus) ? Long.toString((long) cpus) : "%.2f".formatted(cpus);
    if (quota.isPresent() && cpus < 2) {
      out.warning(
          "%s processors by quota".formatted(has),
          "a lane that waits uses up the quota, and then all threads of the process stand still for"
              + " the rest of the period",
          "raise the CPU limit of the container to 2 or more, or take it away and set requests",
          all);
    } else if (cpus < 2) {
      out.warning(
          "%s processor for this process".formatted(has),
          "lanes and the thread that serves the wire take turns"
              + (ranks.isPresent() && ranks.getAsLong() > 1
                  ? ": the launcher binds each rank to one core"
                  : ""),
          "mpirun --bind-to none or --map-by socket:PE=N; srun --cpus-per-task=N; or a larger"
              + " machine",
          all);
    } else if (quota.isPresent() && cpus != Math.rint(cpus)) {
      out.warning(
          "%s processors by quota".formatted(has),
          "Java rounds up: more threads run than the quota feeds, and the kernel stops them all",
          "make the CPU limit a whole number, or take it away and set requests",
          all);
    } else {
      out.ok("%s processors for this process".formatted(has), all);
    }
  }

  private record Quota(double cpus, Evidence evidence) {}

  private static Optional<Quota> quota(Machine machine) {
    Optional<Quota> least = Optional.empty();
    for (String folder : Cgroup.folders(machine, "0::", "/sys/fs/cgroup")) {
      Reading both = machine.read(folder + "/cpu.max");
      String[] words = both.value().split(" ", -1);
      if (words.length == 2) {
        least = tighter(least, words[0], words[1], both.evidence());
      }
    }
    for (String folder : Cgroup.folders(machine, ":cpu,cpuacct:", "/sys/fs/cgroup/cpu,cpuacct")) {
      least = versionOne(machine, folder, least);
    }
    for (String folder : Cgroup.folders(machine, ":cpu:", "/sys/fs/cgroup/cpu")) {
      least = versionOne(machine, folder, least);
    }
    return least;
  }

  private static Optional<Quota> versionOne(Machine machine, String folder, Optional<Quota> least) {
    Reading quota = machine.read(folder + "/cpu.cfs_quota_us");
    Reading period = machine.read(folder + "/cpu.cfs_period_us");
    return tighter(least, quota.value(), period.value(), quota.evidence());
  }

  private static Optional<Quota> tighter(
      Optional<Quota> least, String quota, String period, Evidence evidence) {
    long used = Reading.number(quota).orElse(-1);
    long of = Reading.number(period).orElse(-1);
    if (used <= 0 || of <= 0) {
      return least;
    }
    double cpus = (double) used / of;
    return least.isPresent() && least.get().cpus() <= cpus
        ? least
        : Optional.of(new Quota(cpus, evidence));
  }

  static void governor(Machine machine, Findings out) {
    Map<String, Integer> governors = new TreeMap<>();
    for (String cpu : machine.list("/sys/devices/system/cpu", "cpu[0-9]+")) {
      String governor = machine.read(cpu + "/cpufreq/scaling_governor").value();
      if (!governor.isEmpty()) {
        governors.merge(governor, 1, Integer::sum);
      }
    }
    Evidence evidence =
        new Evidence("/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor", governors.toString());
    if (governors.isEmpty()) {
      out.notApplicable("the machine does not let the kernel set frequencies", evidence);
    } else if (governors.keySet().equals(java.util.Set.of("performance"))) {
      out.ok("performance", evidence);
    } else {
      out.warning(
          "processors save energy: " + governors,
          "a processor that slept answers late, by tens of microseconds",
          "cpupower frequency-set -g performance",
          evidence);
    }
  }
}
