package org.mkernel.cli.doctor;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.mkernel.api.Availability;
import org.mkernel.api.Config;
import org.mkernel.api.PluginInfo;

/**
 * A machine with everything in order: two GPUs, two adapters, two memory nodes, a launcher. What is
 * changed in its files is undone when it is closed, so that many can share a folder, one by one.
 */
final class FakeMachine implements AutoCloseable {
  static final String ADAPTER = "/sys/class/infiniband/mlx5_0";
  static final String PORT = ADAPTER + "/ports/1";
  static final String GPU = "/sys/bus/pci/devices/0000:01:00.0";
  static final String BRIDGE = "/sys/bus/pci/devices/0000:00:01.0";
  static final String GROUP = "/sys/fs/cgroup/job/step";

  final Path root;
  final Map<String, String> environment = new HashMap<>();
  final Map<String, String> programs = new HashMap<>();
  final Map<String, Boolean> nativeAccess = new HashMap<>(Map.of("org.mkernel.kernels.host", true));
  final Map<String, String> versions =
      new HashMap<>(Map.of("org.mkernel.api", "1", "org.mkernel.runtime", "1"));
  int javaRelease = 25;
  Supplier<List<PluginInfo>> providers =
      () -> List.of(available("transport", "rdma"), available("device", "cuda"));

  private final Map<Path, Optional<byte[]>> before = new HashMap<>();
  private final Map<Path, Set<PosixFilePermission>> rights = new HashMap<>();

  FakeMachine(Path root) {
    this.root = root;
    if (!Files.exists(root.resolve("proc"))) {
      process();
      system();
      adapter("mlx5_0", "eth0", 0);
      adapter("mlx5_1", "eth1", 1);
      gpu("0000:01:00.0");
      gpu("0000:02:00.0");
      pci("0000:00:01.0", "0x8086", "0x060400");
      bytes(BRIDGE + "/config", config(0));
      before.clear();
      rights.clear();
    }
    environment.put("MKERNEL_RANK", "0");
    environment.put("MKERNEL_WORLD_SIZE", "4");
    environment.put("MKERNEL_RENDEZVOUS", "node0:12345");
    environment.put("MKERNEL_SECRET_FILE", "/etc/secret");
    environment.put("MKERNEL_CACHE", "/var/cache/mkernel");
    programs.put(
        "--query-gpu=index,compute_mode,mig.mode.current,persistence_mode",
        "0, Default, Disabled, Enabled\n1, Default, Disabled, Enabled\n");
    programs.put(
        "--query-gpu=index,fabric.state,fabric.status",
        "0, Completed, Success\n1, Completed, Success\n");
    programs.put("--query-compute-apps=pid,used_memory", "");
    programs.put("nvlink", "GPU 0: NVIDIA H200\n\t Link 0: 26.562 GB/s\n\t Link 1: 26.562 GB/s\n");
  }

  static PluginInfo available(String kind, String name) {
    return new PluginInfo(kind, name, "a.module", "", new Availability.Available(""));
  }

  static PluginInfo missing(String kind, String name) {
    return new PluginInfo(
        kind, name, "a.module", "", new Availability.Unavailable("out of luck", "have luck"));
  }

  private void process() {
    file("/proc/self/limits", "Limit                     Soft Limit   Hard Limit   Units\n");
    limit("Max processes", "100000");
    limit("Max open files", "65536");
    limit("Max locked memory", "unlimited");
    file("/proc/self/status", "");
    status("0-7", owner());
    file("/proc/self/mounts", "shm /dev/shm tmpfs rw,nosuid,size=65536k 0 0\n");
    file("/proc/self/cgroup", "0::/job/step\n");
    file("/proc/1/cgroup", "0::/init.scope\n");
    file(GROUP + "/memory.max", "max");
    file(GROUP + "/cpu.max", "max 100000");
    file(GROUP + "/pids.max", "max");
  }

  /** Appends a limit of the process; the first one of a name counts. */
  void limit(String name, String soft) {
    append("/proc/self/limits", "%-25s %s  unlimited  units%n".formatted(name, soft));
  }

  void status(String cpus, String user) {
    file(
        "/proc/self/status",
        "Name:\tjava\nUid:\t%s\t%s\t%s\t%s\nCapEff:\t0000000000000000\nCpus_allowed_list:\t%s\n"
            .formatted(user, user, user, user, cpus));
  }

  String owner() {
    try {
      return String.valueOf(Files.getAttribute(root.resolve("proc/self/status"), "unix:uid"));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private void system() {
    file("/proc/meminfo", "MemTotal: 66000000 kB\nHugePages_Free: 0\nHugepagesize: 2048 kB\n");
    file("/proc/cmdline", "root=/dev/sda1 iommu=pt");
    file("/proc/sys/kernel/osrelease", "6.1.0-30-amd64\n");
    file("/proc/sys/vm/overcommit_memory", "0\n");
    file("/proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n");
    file("/proc/sys/net/core/somaxconn", "4096\n");
    file("/proc/driver/nvidia/version", driver("580.65.06"));
    file("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n");
    file("/sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet\n");
    file("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
    file("/sys/devices/system/node/node0/cpulist", "0-3\n");
    file("/sys/devices/system/node/node1/cpulist", "4-7\n");
    file("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    file("/sys/kernel/mm/transparent_hugepage/shmem_enabled", "always [never]\n");
    file("/etc/hosts", "127.0.0.1 localhost\n10.0.0.1 node0\n");
    file("/etc/secret", "0123456789abcdef");
    rights("/etc/secret", "rw-------");
    file("/dev/nvidiactl", "");
    file("/dev/nvidia-uvm", "");
    file("/usr/lib64/libcuda.so.580.65.06", "");
    file("/var/cache/mkernel/cubins/one.cubin", "");
  }

  static String driver(String version) {
    return "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  %s  Release Build\n"
        .formatted(version);
  }

  private void adapter(String name, String net, int number) {
    String folder = "/sys/class/infiniband/" + name;
    String port = folder + "/ports/1";
    file(folder + "/device/numa_node", number + "\n");
    file(folder + "/device/iommu_group/type", "identity\n");
    file(port + "/state", "4: ACTIVE\n");
    file(port + "/phys_state", "5: LinkUp\n");
    file(port + "/link_layer", "Ethernet\n");
    file(port + "/lid", "0x0\n");
    file(port + "/pkeys/0", "0xffff\n");
    file(port + "/gids/0", "fe80:0000:0000:0000:0000:0000:0000:0001\n");
    file(port + "/gids/1", "0000:0000:0000:0000:0000:ffff:0a00:0001\n");
    file(port + "/gids/2", "0000:0000:0000:0000:0000:0000:0000:0000\n");
    for (int gid = 0; gid < 2; gid++) {
      file(port + "/gid_attrs/types/" + gid, "RoCE v2\n");
      file(port + "/gid_attrs/ndevs/" + gid, net + "\n");
    }
    file(port + "/hw_counters/out_of_sequence", "0\n");
    file(port + "/counters/link_downed", "0\n");
    file("/sys/class/infiniband_verbs/uverbs" + number + "/ibdev", name + "\n");
    file("/dev/infiniband/uverbs" + number, "");
    file("/sys/class/net/" + net + "/mtu", "9000\n");
    file("/sys/class/net/" + net + "/operstate", "up\n");
    file("/sys/class/net/" + net + "/ecn/roce_np/enable/3", "1\n");
    file("/sys/class/net/" + net + "/ecn/roce_rp/enable/3", "1\n");
  }

  void pci(String address, String vendor, String type) {
    file("/sys/bus/pci/devices/" + address + "/vendor", vendor + "\n");
    file("/sys/bus/pci/devices/" + address + "/class", type + "\n");
  }

  private void gpu(String address) {
    String folder = "/sys/bus/pci/devices/" + address;
    pci(address, "0x10de", "0x030200");
    file(
        folder + "/resource",
        """
        0x00000000a0000000 0x00000000a0ffffff 0x0000000000040200
        0x0000206000000000 0x0000207fffffffff 0x000000000014220c
        """);
    file(folder + "/iommu_group/type", "identity\n");
  }

  /** The configuration space of a bridge: a capability of no interest, then access control. */
  static byte[] config(int control) {
    return ByteBuffer.allocate(4096)
        .order(ByteOrder.LITTLE_ENDIAN)
        .putInt(0x100, 0x14820001)
        .putInt(0x148, 0x0001000d)
        .putShort(0x14e, (short) control)
        .array();
  }

  private Path remembered(Path file) throws IOException {
    if (!before.containsKey(file)) {
      boolean there = Files.exists(file);
      before.put(file, there ? Optional.of(Files.readAllBytes(file)) : Optional.empty());
      if (there) {
        rights.put(file, Files.getPosixFilePermissions(file));
      }
    }
    return file;
  }

  @Override
  public void close() throws IOException {
    for (Map.Entry<Path, Optional<byte[]>> entry : before.entrySet()) {
      if (entry.getValue().isPresent()) {
        Files.createDirectories(entry.getKey().getParent());
        Files.write(entry.getKey(), entry.getValue().get());
      } else {
        Files.deleteIfExists(entry.getKey());
      }
    }
    for (Map.Entry<Path, Set<PosixFilePermission>> entry : rights.entrySet()) {
      Files.setPosixFilePermissions(entry.getKey(), entry.getValue());
    }
  }

  private Path at(String path) {
    Path file = root.resolve(path.substring(1));
    try {
      Files.createDirectories(file.getParent());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return file;
  }

  void file(String path, String text) {
    bytes(path, text.getBytes(StandardCharsets.UTF_8));
  }

  void bytes(String path, byte[] bytes) {
    try {
      Files.write(remembered(at(path)), bytes);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private void append(String path, String text) {
    try {
      file(path, Files.readString(at(path)) + text);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Replaces words in a file; they must be there. */
  void replace(String path, String words, String by) {
    try {
      String text = Files.readString(at(path));
      if (!text.contains(words)) {
        throw new AssertionError("no \"%s\" in %s".formatted(words, text));
      }
      file(path, text.replace(words, by));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  void rights(String path, String rights) {
    try {
      this.rights.putIfAbsent(at(path), Files.getPosixFilePermissions(at(path)));
      Files.setPosixFilePermissions(at(path), PosixFilePermissions.fromString(rights));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Deletes a file, or a folder with all that is in it. */
  void delete(String path) {
    Path file = at(path);
    if (!Files.exists(file)) {
      throw new AssertionError(path + " is not there");
    }
    try (Stream<Path> all = Files.walk(file)) {
      for (Path each : all.sorted(Comparator.reverseOrder()).toList()) {
        Files.delete(Files.isDirectory(each) ? each : remembered(each));
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  Doctor doctor() {
    return new Doctor(
        new Machine(
            root,
            environment,
            Config.defaults(),
            new JavaFacts(javaRelease, "25.0.1", 8L << 30, 8, nativeAccess, versions),
            command ->
                Optional.ofNullable(programs.get(command.get(1)))
                    .filter(text -> command.getFirst().equals("nvidia-smi")),
            providers));
  }
}
