package org.mkernel.cli.doctor;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.mkernel.api.Config;
import org.mkernel.api.Failure;
import org.mkernel.api.UsageException;

/** Every probe, on a machine in order and on one with the fault that it looks for. */
final class DoctorTest {
  @TempDir static Path shared;

  @TempDir Path folder;

  /**
   * A fault.
   *
   * @param probe the probe that sees it
   * @param severity how bad it is
   * @param words of the summary
   * @param make makes it, on a machine in order
   */
  record Fault(String probe, Severity severity, String words, Consumer<FakeMachine> make) {
    @Override
    public String toString() {
      return probe + ": " + words;
    }
  }

  private static Fault error(String probe, String words, Consumer<FakeMachine> make) {
    return new Fault(probe, Severity.ERROR, words, make);
  }

  private static Fault warning(String probe, String words, Consumer<FakeMachine> make) {
    return new Fault(probe, Severity.WARNING, words, make);
  }

  static List<Fault> faults() {
    String port = FakeMachine.PORT;
    String query = "--query-gpu=index,compute_mode,mig.mode.current,persistence_mode";
    return List.of(
        error("java", "Java 25.0.1", m -> m.javaRelease = 24),
        warning("java", "1 modules may not", m -> m.nativeAccess.put("org.mkernel.x", false)),
        error("modules", "different versions", m -> m.versions.put("org.mkernel.api", "2")),
        error(
            "providers",
            "the plug-in folder is open",
            m ->
                m.providers =
                    () -> {
                      throw new UsageException(
                          "the plug-in folder is open", Failure.remedy("chmod o-w"));
                    }),
        error(
            "providers",
            "plug-in folder x can't be used",
            m -> m.providers = () -> List.of(FakeMachine.missing("plug-in folder", "x"))),
        warning(
            "fallback",
            "the transport rdma can't be used",
            m -> m.providers = () -> List.of(FakeMachine.missing("transport", "rdma"))),
        warning(
            "fallback",
            "the device cuda can't be used",
            m -> m.providers = () -> List.of(FakeMachine.missing("device", "cuda"))),
        error(
            "launcher",
            "MKERNEL_WORLD_SIZE is not set",
            m -> m.environment.remove("MKERNEL_WORLD_SIZE")),
        error("launcher", "MKERNEL_RANK is \"4\"", m -> m.environment.put("MKERNEL_RANK", "4")),
        warning(
            "launcher",
            "not started by srun",
            m -> {
              m.environment.clear();
              m.environment.put("SLURM_JOB_ID", "1");
              m.environment.put("SLURM_NTASKS", "4");
            }),
        error(
            "rendezvous",
            "node0 is a loopback address",
            m -> m.file("/etc/hosts", "127.0.1.1\tnode0.cluster node0 # Debian\n")),
        error("secret", "no secret", m -> m.environment.remove("MKERNEL_SECRET_FILE")),
        error("secret", "both set", m -> m.environment.put("MKERNEL_SECRET", "0123456789abcdef")),
        error("secret", "open to others", m -> m.rights("/etc/secret", "rw-r--r--")),
        error("secret", "has 5 bytes", m -> m.file("/etc/secret", "short")),
        error("secret", "can't be read", m -> m.delete("/etc/secret")),
        error(
            "secret",
            "has 5 characters",
            m -> {
              m.environment.remove("MKERNEL_SECRET_FILE");
              m.environment.put("MKERNEL_SECRET", "short");
            }),
        warning(
            "ports",
            "between 12000 and 27999",
            m -> m.file("/proc/sys/net/ipv4/ip_local_port_range", "1024 65535")),
        warning(
            "ports", "2 connections may wait", m -> m.file("/proc/sys/net/core/somaxconn", "2")),
        error("kernel", "Linux 3.10", m -> m.file("/proc/sys/kernel/osrelease", "3.10.0-957")),
        warning("kernel", "Linux 4.18", m -> m.file("/proc/sys/kernel/osrelease", "4.18.0-477")),
        warning(
            "clock",
            "the clock is hpet",
            m ->
                m.file("/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet")),
        warning(
            "cpus", "0.50 processors", m -> m.file(FakeMachine.GROUP + "/cpu.max", "50000 100000")),
        warning(
            "cpus", "2.50 processors", m -> m.file("/sys/fs/cgroup/job/cpu.max", "250000 100000")),
        warning("cpus", "1 processor for this process", m -> m.status("3", m.owner())),
        warning(
            "cpus",
            "1 processors by quota",
            m -> {
              m.file("/proc/self/cgroup", "4:cpu,cpuacct:/job\n");
              m.file("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "100000");
              m.file("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000");
            }),
        warning(
            "cpu-governor",
            "powersave=1",
            m -> m.file("/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave")),
        error(
            "memory",
            "the Java heap may grow past the 4 GiB",
            m -> m.file("/sys/fs/cgroup/job/memory.max", Long.toString(4L << 30))),
        error(
            "memory",
            "past the 1 GiB",
            m -> {
              m.file("/proc/self/cgroup", "9:memory:/docker/x\n");
              m.file("/sys/fs/cgroup/memory/memory.limit_in_bytes", Long.toString(1L << 30));
            }),
        warning("memory", "not overcommitted", m -> m.file("/proc/sys/vm/overcommit_memory", "2")),
        error(
            "shared-memory",
            "may not open each other's memory",
            m -> m.status("0-7", Long.toString(Long.parseLong(m.owner()) + 1))),
        error("shared-memory", "no /proc", m -> m.delete("/proc/self/status")),
        warning(
            "huge-pages",
            "16000 huge pages",
            m -> m.replace("/proc/meminfo", "HugePages_Free: 0", "HugePages_Free: 16000")),
        warning(
            "huge-pages",
            "never used",
            m -> m.file("/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]")),
        error(
            "lock-limit",
            "64 KiB",
            m ->
                m.replace(
                    "/proc/self/limits",
                    "Max locked memory         unlimited",
                    "Max locked memory         65536")),
        warning(
            "lock-limit",
            "1 GiB",
            m ->
                m.replace(
                    "/proc/self/limits",
                    "Max locked memory         unlimited",
                    "Max locked memory         1073741824")),
        warning("open-files", "256 files", m -> m.replace("/proc/self/limits", "65536", "256")),
        warning("threads", "100 threads", m -> m.replace("/proc/self/limits", "100000", "100")),
        warning("threads", "64 threads", m -> m.file(FakeMachine.GROUP + "/pids.max", "64")),
        error(
            "rdma-adapters", "mlx5_0 has no active port", m -> m.file(port + "/state", "1: DOWN")),
        error("rdma-adapters", "device file", m -> m.delete("/dev/infiniband/uverbs0")),
        error("rdma-adapters", "device file", m -> m.delete("/sys/class/infiniband_verbs/uverbs0")),
        warning(
            "rdma-adapters",
            "without its driver",
            m -> {
              m.delete("/sys/class/infiniband");
              m.pci("0000:03:00.0", "0x15b3", "0x020000");
            }),
        error("rdma-addresses", "no GID", m -> m.delete(port + "/gids/1")),
        error("rdma-addresses", "no GID", m -> m.file(port + "/gid_attrs/types/1", "IB/RoCE v1")),
        error("rdma-addresses", "no GID", m -> m.file("/sys/class/net/eth0/operstate", "down")),
        error(
            "rdma-addresses", "no local address", m -> m.file(port + "/link_layer", "InfiniBand")),
        warning(
            "rdma-addresses",
            "limited member",
            m -> {
              m.file(port + "/link_layer", "InfiniBand");
              m.file(port + "/lid", "0x12");
              m.file(port + "/pkeys/0", "0x7fff");
            }),
        error(
            "rdma-mtu",
            "differ in MTU: [1500, 9000]",
            m -> m.file("/sys/class/net/eth0/mtu", "1500")),
        warning(
            "rdma-mtu",
            "an MTU of 1500",
            m -> {
              m.file("/sys/class/net/eth0/mtu", "1500");
              m.file("/sys/class/net/eth1/mtu", "1500");
            }),
        warning(
            "rdma-congestion",
            "mlx5_0 port 1 does not react",
            m -> {
              m.file("/sys/class/net/eth0/ecn/roce_np/enable/3", "0");
              m.file("/sys/class/net/eth0/ecn/roce_rp/enable/3", "0");
            }),
        warning(
            "rdma-losses", "lost packets", m -> m.file(port + "/hw_counters/out_of_sequence", "7")),
        warning("rdma-losses", "lost packets", m -> m.file(port + "/counters/link_downed", "1")),
        warning(
            "rdma-locality",
            "does not say which node mlx5_0",
            m -> m.file(FakeMachine.ADAPTER + "/device/numa_node", "-1")),
        warning(
            "rdma-locality",
            "runs on no node that has an adapter",
            m -> m.status("8-15", m.owner())),
        error(
            "pci-acs",
            "1 PCI bridges redirect",
            m -> m.bytes(FakeMachine.BRIDGE + "/config", FakeMachine.config(0x1d))),
        warning(
            "iommu",
            "translates addresses of 1 devices",
            m -> m.file(FakeMachine.GPU + "/iommu_group/type", "DMA-FQ")),
        error(
            "gpu-driver", "2 GPUs without NVIDIA's", m -> m.delete("/proc/driver/nvidia/version")),
        error(
            "gpu-driver",
            "driver 535.54.03",
            m -> m.file("/proc/driver/nvidia/version", FakeMachine.driver("535.54.03"))),
        error("gpu-driver", "/dev/nvidia-uvm is missing", m -> m.delete("/dev/nvidia-uvm")),
        error(
            "gpu-driver",
            "different versions",
            m -> {
              m.delete("/usr/lib64/libcuda.so.580.65.06");
              m.file("/usr/lib/x86_64-linux-gnu/libcuda.so.575.57.08", "");
            }),
        warning("gpu-driver", "hides all GPUs", m -> m.environment.put("CUDA_VISIBLE_DEVICES", "")),
        error("gpu-mode", "GPU 0 is closed", m -> m.programs.put(query, "0, Prohibited, x, y")),
        warning(
            "gpu-mode",
            "GPU 1 takes one process",
            m -> m.programs.put(query, "1, Exclusive_Process, Disabled, Enabled")),
        warning(
            "gpu-mode",
            "GPU 0 is split",
            m -> m.programs.put(query, "0, Default, Enabled, Enabled")),
        warning(
            "gpu-mode",
            "GPU 0 is switched off",
            m -> m.programs.put(query, "0, Default, [N/A], Disabled")),
        warning(
            "gpu-others",
            "1 other programs",
            m -> m.programs.put("--query-compute-apps=pid,used_memory", "4711, 512 MiB\n")),
        error(
            "gpu-links",
            "the NVLink fabric of GPU 0",
            m ->
                m.programs.put(
                    "--query-gpu=index,fabric.state,fabric.status", "0, In Progress, N/A")),
        warning(
            "gpu-links",
            "1 of 2 NVLinks",
            m -> m.programs.put("nvlink", "GPU 0:\n Link 0: 26 GB/s\n Link 1: <inactive>\n")),
        warning(
            "gpu-peer-memory",
            "can't reach the memory of GPUs",
            m -> m.file("/proc/sys/kernel/osrelease", "5.4.0")),
        warning(
            "gpu-peer-memory",
            "256 MiB of the memory",
            m ->
                m.file(
                    FakeMachine.GPU + "/resource",
                    "0x1000 0x1fff 0x0\n0x10000000 0x1fffffff 0x14220c\n")),
        warning("kernel-cache", "no folder", m -> m.environment.remove("MKERNEL_CACHE")),
        warning(
            "kernel-cache",
            "can't be written",
            m -> m.environment.put("MKERNEL_CACHE", "/etc/hosts/cache")),
        error(
            "kernel-cache",
            "writable by everybody",
            m -> m.rights("/var/cache/mkernel", "rwxrwxrwx")));
  }

  @Test
  void aMachineInOrderHasNothingWrong() throws IOException {
    try (FakeMachine machine = new FakeMachine(shared)) {
      List<Finding> findings = machine.doctor().examine();
      assertThat(findings)
          .allSatisfy(finding -> assertThat(finding.severity()).isEqualTo(Severity.OK));
      assertThat(findings.stream().map(Finding::probe).collect(Collectors.toSet()))
          .containsExactlyInAnyOrderElementsOf(Doctor.probes());
    }
  }

  @ParameterizedTest
  @MethodSource("faults")
  void aFaultIsFoundWithEvidenceCauseAndRemedy(Fault fault) throws IOException {
    try (FakeMachine machine = new FakeMachine(shared)) {
      fault.make().accept(machine);
      assertThat(machine.doctor().examine(fault.probe()))
          .filteredOn(finding -> finding.severity().compareTo(Severity.OK) < 0)
          .singleElement()
          .satisfies(finding -> {
            assertThat(finding.severity()).isEqualTo(fault.severity());
            assertThat(finding.probe()).isEqualTo(fault.probe());
            assertThat(finding.summary()).contains(fault.words());
            assertThat(finding.cause()).isNotBlank();
            assertThat(finding.remedy()).isNotBlank();
          });
    }
  }

  /** Two probes only tell what is so. */
  @Test
  void everyProbeHasAFault() {
    Set<String> probes = new LinkedHashSet<>(Doctor.probes());
    faults().forEach(fault -> probes.remove(fault.probe()));
    assertThat(probes).containsExactly("container", "shm");
  }

  @Test
  void aContainerIsSeen() throws IOException {
    try (FakeMachine machine = new FakeMachine(shared)) {
      machine.file("/.dockerenv", "");
      assertThat(machine.doctor().examine("container").getFirst().summary())
          .startsWith("a container");
    }
  }

  @Test
  void worstComesFirst() throws IOException {
    try (FakeMachine machine = new FakeMachine(shared)) {
      machine.file("/proc/sys/vm/overcommit_memory", "2");
      machine.delete("/dev/nvidia-uvm");
      assertThat(machine.doctor().examine().stream().map(Finding::severity).distinct())
          .containsExactly(Severity.ERROR, Severity.WARNING, Severity.OK);
    }
  }

  @Test
  void anEmptyMachineIsNoFault() {
    Doctor doctor =
        new Doctor(
            new Machine(
                folder,
                Map.of(),
                Config.defaults(),
                JavaFacts.ofThisProcess(),
                command -> Optional.empty(),
                () -> List.of(FakeMachine.available("device", "host"))));
    assertThat(doctor.examine())
        .filteredOn(finding -> finding.severity() == Severity.ERROR)
        .extracting(Finding::probe)
        .containsExactly("shared-memory");
  }

  /** What the kernel never writes, but a container or a strange driver may show. */
  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3})
  void garbageIsNoFailureOfAProbe(int seed) throws IOException {
    FakeMachine machine = new FakeMachine(folder);
    Random random = new Random(seed);
    List<Path> files;
    try (Stream<Path> all = Files.walk(folder)) {
      files = all.filter(Files::isRegularFile).sorted().toList();
    }
    for (Path file : files) {
      byte[] garbage = new byte[random.nextInt(200)];
      random.nextBytes(garbage);
      switch (random.nextInt(8)) {
        case 0 -> Files.write(file, garbage);
        case 1 -> Files.writeString(file, "9".repeat(random.nextInt(1, 40)));
        case 2 -> Files.writeString(file, "-" + Long.MIN_VALUE + "-,\u001b[2J \t" + seed);
        case 3 -> Files.write(file, new byte[Machine.MOST_BYTES + 1]);
        case 4 -> {
          Files.delete(file);
          Files.createDirectory(file);
        }
        case 5 -> {
          Files.delete(file);
          Files.createSymbolicLink(file, file);
        }
        case 6 -> {
          String text = Files.readString(file);
          Files.writeString(file, text.substring(0, random.nextInt(text.length() + 1)));
        }
        default -> {
          // As it is.
        }
      }
    }
    machine.programs.replaceAll((command, text) -> text + ",,\u001b[2J\n,");
    assertThat(machine.doctor().examine())
        .allSatisfy(finding -> {
          assertThat(finding.summary()).doesNotContain("this probe failed");
          assertThat(finding.evidence().toString()).doesNotContain("\u001b");
        });
  }

  /** Nobody writes to it: reading would wait for ever. */
  @Test
  void aPipeIsNotRead() throws Exception {
    FakeMachine machine = new FakeMachine(folder);
    Path file = folder.resolve("proc/meminfo");
    Files.delete(file);
    assertThat(new ProcessBuilder("mkfifo", file.toString()).start().waitFor()).isZero();
    assertThat(machine.doctor().examine("memory")).hasSize(1);
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 64, 0x102, 0x104, 0x10b, 0x150})
  void aShortConfigurationSpaceHasNoCapability(int bytes) {
    byte[] config = Arrays.copyOf(FakeMachine.config(0x1d), bytes);
    assertThat(PciProbes.accessControl(config)).isEqualTo(bytes == 0x150 ? 0x1d : 0);
  }

  @Test
  void capabilitiesThatLoopEnd() {
    byte[] config = new byte[4096];
    ByteBuffer.wrap(config).order(ByteOrder.LITTLE_ENDIAN).putInt(0x100, 0x10010001);
    assertThat(PciProbes.accessControl(config)).isZero();
  }

  @Test
  void aProgramThatIsMissingOrFailsShowsNothing() {
    assertThat(Programs.real().output(List.of("/no/such/program"))).isEmpty();
    assertThat(Programs.real().output(List.of("false"))).isEmpty();
    assertThat(Programs.real().output(List.of("echo", "words"))).hasValue("words\n");
  }
}
