package org.mkernel.cli.doctor;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.mkernel.cli.doctor.Finding.Evidence;

/** NVIDIA GPUs: their driver, how they are set, and how others reach their memory. */
final class GpuProbes {
  private static final int LEAST_DRIVER = 580;
  private static final String VERSION = "/proc/driver/nvidia/version";
  private static final Pattern DRIVER =
      Pattern.compile("Kernel Module.*?\\s([0-9]{3,4}(\\.[0-9]{1,4}){1,2})\\s");
  private static final long SMALL_WINDOW = 1L << 30;
  private static final String NONE = "no NVIDIA GPU";

  private GpuProbes() {}

  private static Optional<String> driverVersion(Machine machine) {
    return machine
        .read(VERSION)
        .lines()
        .map(line -> DRIVER.matcher(line + " "))
        .filter(Matcher::find)
        .map(found -> found.group(1))
        .findFirst();
  }

  private static Evidence gpus(Machine machine) {
    return new Evidence("/sys/bus/pci/devices", machine.gpus().toString());
  }

  static void driver(Machine machine, Findings out) {
    if (machine.gpus().isEmpty()) {
      out.notApplicable(NONE, gpus(machine));
      return;
    }
    Evidence evidence = machine.read(VERSION).evidence();
    Optional<String> version = driverVersion(machine);
    if (version.isEmpty()) {
      out.error(
          "%d GPUs without NVIDIA's driver".formatted(machine.gpus().size()),
          "the device cuda works through it",
          "install NVIDIA driver %d or newer, and: modprobe nvidia nvidia_uvm"
              .formatted(LEAST_DRIVER),
          gpus(machine),
          evidence);
      return;
    }
    int major = Integer.parseInt(version.get().replaceFirst("\\..*", ""));
    if (major < LEAST_DRIVER) {
      out.error(
          "driver " + version.get(),
          "the shipped machine code and the CUDA 13 libraries need driver %d"
              .formatted(LEAST_DRIVER),
          "install NVIDIA driver %d or newer".formatted(LEAST_DRIVER),
          evidence);
      return;
    }
    for (String file : new String[] {"/dev/nvidiactl", "/dev/nvidia-uvm"}) {
      if (!machine.exists(file)) {
        out.error(
            file + " is missing",
            "the driver is loaded, but this process can't reach it",
            "modprobe nvidia_uvm; start containers with the NVIDIA runtime: --gpus all",
            new Evidence(file, "(not there)"),
            evidence);
        return;
      }
    }
    List<String> libraries = new ArrayList<>();
    for (String folder : new String[] {"/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib"}) {
      libraries.addAll(machine.list(folder, "libcuda\\.so\\.[0-9]+\\.[0-9.]+"));
    }
    Evidence found = new Evidence("libcuda.so.*", libraries.toString());
    if (!libraries.isEmpty()
        && libraries.stream().noneMatch(name -> name.endsWith(".so." + version.get()))) {
      out.error(
          "libcuda and the kernel module are of different versions",
          "the driver refuses its own library: error 803",
          "reboot after the update of the driver; in a container let the NVIDIA runtime mount the"
              + " library",
          found,
          evidence);
      return;
    }
    String visible = machine.environment().getOrDefault("CUDA_VISIBLE_DEVICES", "all");
    if (visible.isEmpty() || visible.startsWith("-")) {
      out.warning(
          "CUDA_VISIBLE_DEVICES hides all GPUs",
          "the device cuda finds none",
          "unset CUDA_VISIBLE_DEVICES, or name the GPUs: 0,1",
          new Evidence("CUDA_VISIBLE_DEVICES", visible));
      return;
    }
    out.ok("driver " + version.get(), evidence, found);
  }

  /** Lines of nvidia-smi's table, as cells. */
  private static List<String[]> query(Machine machine, String query) {
    return machine
        .programs()
        .output(List.of("nvidia-smi", query, "--format=csv,noheader"))
        .map(text -> text.lines().limit(64).map(line -> line.split(",\\s*", -1)).toList())
        .orElse(List.of());
  }

  private static boolean isBlind(Machine machine, Findings out, List<String[]> rows) {
    if (machine.gpus().isEmpty()) {
      out.notApplicable(NONE);
    } else if (rows.isEmpty()) {
      out.notApplicable("nvidia-smi is not here, or shows nothing");
    } else {
      return false;
    }
    return true;
  }

  static void mode(Machine machine, Findings out) {
    String query = "--query-gpu=index,compute_mode,mig.mode.current,persistence_mode";
    List<String[]> rows = machine.gpus().isEmpty() ? List.of() : query(machine, query);
    if (isBlind(machine, out, rows)) {
      return;
    }
    for (String[] row : rows) {
      if (row.length < 4) {
        continue;
      }
      Evidence evidence = new Evidence("nvidia-smi " + query, String.join(", ", row));
      String gpu = "GPU " + row[0];
      if (row[1].equals("Prohibited")) {
        out.error(
            gpu + " is closed to programs",
            "its compute mode is Prohibited",
            "nvidia-smi -i %s -c DEFAULT".formatted(row[0]),
            evidence);
      } else if (row[1].startsWith("Exclusive")) {
        out.warning(
            gpu + " takes one process only",
            "a second rank on it fails when it opens the GPU",
            "nvidia-smi -i %s -c DEFAULT, or one process for each GPU".formatted(row[0]),
            evidence);
      } else if (row[2].equals("Enabled")) {
        out.warning(
            gpu + " is split into instances (MIG)",
            "instances have fewer SMs, and no way to one another but through the host",
            "nvidia-smi -i %s -mig 0".formatted(row[0]),
            evidence);
      } else if (row[3].equals("Disabled")) {
        out.warning(
            gpu + " is switched off whenever nobody uses it",
            "each first use then waits a second or more for its driver",
            "nvidia-smi -pm 1, or run nvidia-persistenced",
            evidence);
      } else {
        out.ok(gpu + " is open to programs", evidence);
      }
    }
  }

  static void others(Machine machine, Findings out) {
    if (machine.gpus().isEmpty()) {
      out.notApplicable(NONE);
      return;
    }
    String query = "--query-compute-apps=pid,used_memory";
    List<String[]> rows = query(machine, query);
    if (rows.isEmpty()) {
      out.ok("no other program is on a GPU", new Evidence("nvidia-smi " + query, "(nothing)"));
      return;
    }
    List<Evidence> evidence = new ArrayList<>();
    rows.forEach(row -> evidence.add(new Evidence("nvidia-smi " + query, String.join(", ", row))));
    out.warning(
        "%d other programs are on GPUs of this machine".formatted(rows.size()),
        "where one holds SMs, the kernel of an operation becomes resident late or in parts, and a"
            + " wait may reach its deadline",
        "end them, or choose other GPUs with CUDA_VISIBLE_DEVICES",
        evidence.toArray(Evidence[]::new));
  }

  static void links(Machine machine, Findings out) {
    String query = "--query-gpu=index,fabric.state,fabric.status";
    List<String[]> rows = machine.gpus().size() < 2 ? List.of() : query(machine, query);
    if (machine.gpus().size() < 2) {
      out.notApplicable("fewer than two NVIDIA GPUs");
      return;
    }
    for (String[] row : rows) {
      String state = row.length < 3 ? "" : row[1];
      if (state.equals("Not Started") || state.equals("In Progress")) {
        out.error(
            "the NVLink fabric of GPU %s is not up".formatted(row[0]),
            "GPUs behind NVLink switches can't be used before Fabric Manager has set them up: error"
                + " 802",
            "systemctl start nvidia-fabricmanager, of the version of the driver; see its log",
            new Evidence("nvidia-smi " + query, String.join(", ", row)));
        return;
      }
    }
    Optional<String> status =
        machine.programs().output(List.of("nvidia-smi", "nvlink", "--status"));
    List<String> links =
        status.orElse("").lines().map(String::strip).filter(l -> l.startsWith("Link ")).toList();
    List<String> down =
        links.stream().filter(l -> l.contains("inactive") || l.contains("N/A")).toList();
    Evidence evidence =
        new Evidence(
            "nvidia-smi nvlink --status",
            "%d links, %d of them down".formatted(links.size(), down.size()));
    if (links.isEmpty()) {
      out.notApplicable("no NVLink is shown: GPUs talk over PCI", evidence);
    } else if (!down.isEmpty()) {
      out.warning(
          "%d of %d NVLinks are down".formatted(down.size(), links.size()),
          "traffic between GPUs is slower by their share",
          "reset the GPUs (nvidia-smi -r) when they are idle; if links stay down, have the board"
              + " looked at",
          evidence);
    } else {
      out.ok("%d NVLinks are up".formatted(links.size()), evidence);
    }
  }

  static void peerMemory(Machine machine, Findings out) {
    if (machine.gpus().isEmpty() || machine.adapters().isEmpty()) {
      out.notApplicable("no GPU together with an RDMA adapter");
      return;
    }
    boolean module = machine.exists("/sys/module/nvidia_peermem");
    boolean open = machine.read(VERSION).value().contains("Open Kernel Module");
    boolean buffers = open && SystemProbes.kernelIsAtLeast(machine, 5, 12);
    Evidence[] evidence = {
      new Evidence("/sys/module/nvidia_peermem", module ? "loaded" : "(not there)"),
      machine.read(VERSION).evidence(),
      machine.read("/proc/sys/kernel/osrelease").evidence()
    };
    if (!module && !buffers) {
      out.warning(
          "adapters can't reach the memory of GPUs",
          "neither dma-buf (the open kernel modules, Linux 5.12) nor nvidia_peermem is there: data"
              + " goes through host memory",
          "install the open kernel modules of the driver, or: modprobe nvidia_peermem",
          evidence);
      return;
    }
    for (String gpu : machine.gpus()) {
      Reading resource = machine.read(gpu + "/resource");
      long window = window(resource);
      if (window > 0 && window < SMALL_WINDOW) {
        out.warning(
            "others see %s of the memory of a GPU at once".formatted(Bytes.text(window)),
            "larger tensors can't be registered with an adapter (BAR1)",
            "turn on \"above 4G decoding\" and \"resizable BAR\" in the firmware",
            new Evidence(resource.path(), "BAR1 of " + Bytes.text(window)));
        return;
      }
    }
    out.ok("adapters reach GPUs by %s".formatted(buffers ? "dma-buf" : "nvidia_peermem"), evidence);
  }

  /** The size of the second address range of a PCI device. */
  private static long window(Reading resource) {
    String[] words = resource.lines().skip(1).findFirst().orElse("").split(" ", -1);
    if (words.length != 3
        || !words[0].matches("0x[0-9a-f]{1,16}")
        || !words[1].matches("0x[0-9a-f]{1,16}")) {
      return 0;
    }
    long first = Long.parseUnsignedLong(words[0].substring(2), 16);
    return first == 0 ? 0 : Long.parseUnsignedLong(words[1].substring(2), 16) - first + 1;
  }

  static void kernelCache(Machine machine, Findings out) {
    if (machine.gpus().isEmpty()) {
      out.notApplicable(NONE);
      return;
    }
    Optional<String> folder =
        machine
            .variable("MKERNEL_CACHE")
            .or(() -> machine.variable("XDG_CACHE_HOME").map(f -> f + "/mkernel"))
            .or(() -> machine.variable("HOME").map(f -> f + "/.cache/mkernel"));
    if (folder.isEmpty() || !folder.get().startsWith("/")) {
      out.warning(
          "no folder for compiled kernels",
          "what is not shipped is compiled anew by each process",
          "set MKERNEL_CACHE to a folder on a local disk",
          machine.variableEvidence("MKERNEL_CACHE"),
          machine.variableEvidence("HOME"));
      return;
    }
    Path place = machine.at(folder.get());
    Path there = place;
    while (!Files.exists(there) && there.getParent() != null) {
      there = there.getParent();
    }
    Evidence evidence = new Evidence(folder.get(), Files.exists(place) ? "there" : "not yet there");
    if (!Files.isDirectory(there) || !Files.isWritable(there)) {
      out.warning(
          "the folder for compiled kernels can't be written",
          "what is not shipped is compiled anew by each process",
          "set MKERNEL_CACHE to a folder that this user may write",
          evidence);
    } else if (Files.exists(place) && LaunchProbes.isOpenToOthers(place, true)) {
      out.error(
          "the folder for compiled kernels is writable by everybody",
          "others could put their code there, to run as this user",
          "chmod -R go-w " + folder.get(),
          evidence);
    } else {
      out.ok("compiled kernels are kept in " + folder.get(), evidence);
    }
  }
}
