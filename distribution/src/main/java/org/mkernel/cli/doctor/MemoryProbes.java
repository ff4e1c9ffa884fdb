package org.mkernel.cli.doctor;

import java.io.IOException;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.Optional;
import java.util.OptionalLong;
import org.mkernel.cli.doctor.Finding.Evidence;

/** Memory, and limits of what a process may take. */
final class MemoryProbes {
  private static final String LIMITS = "/proc/self/limits";
  private static final String STATUS = "/proc/self/status";
  private static final long CAP_IPC_LOCK = 1L << 14;

  /** Below this not even queues of an adapter can be made. */
  private static final long LEAST_LOCKED = 16L << 20;

  private static final long LITTLE_MEMORY = 2L << 30;
  private static final int FEW_FILES = 1024;
  private static final int FEW_THREADS = 512;

  private MemoryProbes() {}

  /** The soft limit of a line of the limits file: nothing when there is none. */
  private static OptionalLong limit(Machine machine, String name) {
    return machine
        .read(LIMITS)
        .after(name)
        .map(rest -> Reading.number(rest.replaceFirst(" .*", "")))
        .orElse(OptionalLong.empty());
  }

  static void lockLimit(Machine machine, Findings out) {
    Evidence limits = machine.read(LIMITS).evidence("Max locked memory");
    if (machine.adapters().isEmpty()) {
      out.notApplicable("only RDMA locks memory, and there is no adapter", limits);
      return;
    }
    Reading status = machine.read(STATUS);
    boolean exempt =
        status
            .after("CapEff:")
            .filter(mask -> mask.matches("[0-9a-f]{1,16}"))
            .map(mask -> (Long.parseUnsignedLong(mask, 16) & CAP_IPC_LOCK) != 0)
            .orElse(false);
    OptionalLong limit = limit(machine, "Max locked memory");
    if (exempt || limit.isEmpty()) {
      out.ok("memory may be locked without a limit", limits, status.evidence("CapEff:"));
      return;
    }
    long bytes = limit.getAsLong();
    String summary = "%s of memory may be locked".formatted(Bytes.text(bytes));
    String remedy =
        "raise it: ulimit -l unlimited; memlock in /etc/security/limits.conf; LimitMEMLOCK=infinity"
            + " in systemd units, slurmd's included; --ulimit memlock=-1 for containers";
    if (bytes < LEAST_LOCKED) {
      out.error(
          summary,
          "queues and buffers of an adapter are locked: making them fails with ENOMEM",
          remedy,
          limits);
    } else {
      out.warning(
          summary,
          "operations whose tensors and workspace are larger can't be prepared over RDMA",
          remedy,
          limits);
    }
  }

  static void openFiles(Machine machine, Findings out) {
    Evidence limits = machine.read(LIMITS).evidence("Max open files");
    OptionalLong limit = limit(machine, "Max open files");
    if (limit.isPresent() && limit.getAsLong() < FEW_FILES) {
      out.warning(
          "%d files may be open".formatted(limit.getAsLong()),
          "a rank has a socket for every peer and stream, and a file for every piece of memory that"
              + " others map",
          "ulimit -n 65536; LimitNOFILE=65536 in systemd units",
          limits);
    } else {
      out.ok("enough files may be open", limits);
    }
  }

  static void threads(Machine machine, Findings out) {
    Optional<Reading> group = Cgroup.limit(machine, "pids.max", "pids", "pids.max");
    OptionalLong user = limit(machine, "Max processes");
    Evidence[] evidence = {
      machine.read(LIMITS).evidence("Max processes"),
      group.map(Reading::evidence).orElse(new Evidence("pids.max of the control group", "none"))
    };
    long least =
        Math.min(
            user.orElse(Long.MAX_VALUE),
            group.map(limit -> limit.number().orElse(Long.MAX_VALUE)).orElse(Long.MAX_VALUE));
    if (least < FEW_THREADS) {
      out.warning(
          "%d threads may be made".formatted(least),
          "each rank has lanes, a control thread, a proxy and those of the Java virtual machine:"
              + " \"unable to create native thread\"",
          "ulimit -u 4096; --pids-limit for containers; TasksMax in systemd units",
          evidence);
    } else {
      out.ok("enough threads may be made", evidence);
    }
  }

  static void memory(Machine machine, Findings out) {
    Optional<Reading> group =
        Cgroup.limit(machine, "memory.max", "memory", "memory.limit_in_bytes");
    Reading system = machine.read("/proc/meminfo");
    OptionalLong total = kibibytes(system, "MemTotal:");
    Evidence[] evidence = {
      system.evidence("MemTotal:"),
      group
          .map(Reading::evidence)
          .orElse(new Evidence("memory limit of the control group", "none")),
      new Evidence("largest heap of Java", Bytes.text(machine.java().maxHeap()))
    };
    long most =
        Math.min(
            total.orElse(Long.MAX_VALUE),
            group.map(limit -> limit.number().orElse(Long.MAX_VALUE)).orElse(Long.MAX_VALUE));
    if (most < machine.java().maxHeap()) {
      out.error(
          "the Java heap may grow past the %s that there are".formatted(Bytes.text(most)),
          "the kernel kills a process that goes over its limit, without a word of its own",
          "set MKERNEL_JAVA_OPTIONS=-Xmx… to a quarter of the limit: tensors lie outside the heap",
          evidence);
    } else if (most < LITTLE_MEMORY) {
      out.warning(
          "%s of memory".formatted(Bytes.text(most)),
          "tensors and workspace of all ranks here must fit in it",
          "raise the limit of the container or job",
          evidence);
    } else if (machine.read("/proc/sys/vm/overcommit_memory").value().equals("2")) {
      out.warning(
          "memory is not overcommitted",
          "the Java virtual machine reserves far more than it uses, and may be refused it",
          "sysctl vm.overcommit_memory=0, or raise vm.overcommit_ratio",
          machine.read("/proc/sys/vm/overcommit_memory").evidence());
    } else {
      out.ok(
          most == Long.MAX_VALUE ? "no limit is known" : "%s".formatted(Bytes.text(most)),
          evidence);
    }
  }

  private static OptionalLong kibibytes(Reading file, String name) {
    OptionalLong number =
        file.after(name)
            .map(rest -> Reading.number(rest.replaceFirst(" *kB$", "")))
            .orElse(OptionalLong.empty());
    return number.isPresent() && number.getAsLong() >= 0 && number.getAsLong() < 1L << 50
        ? OptionalLong.of(number.getAsLong() << 10)
        : OptionalLong.empty();
  }

  /**
   * Ranks of a node open each other's memory in {@code /proc/PID/fd}. The kernel allows it to the
   * same user, whatever Yama says, but not into a process that it counts as privileged: the files
   * of such a one belong to root.
   */
  static void sharedMemory(Machine machine, Findings out) {
    Reading status = machine.read(STATUS);
    Evidence yama = machine.read("/proc/sys/kernel/yama/ptrace_scope").evidence();
    if (!status.isPresent()) {
      out.error(
          "no /proc",
          "ranks of a node map each other's memory through it",
          "mount /proc in the container",
          status.evidence());
      return;
    }
    Optional<String> user = status.after("Uid:").map(ids -> ids.replaceFirst("\\s.*", ""));
    try {
      String owner = String.valueOf(Files.getAttribute(machine.at(STATUS), "unix:uid"));
      if (user.isPresent() && !user.get().equals(owner)) {
        out.error(
            "processes of this user may not open each other's memory",
            "the Java executable has capabilities or another owner's rights, so that the kernel"
                + " guards the process: ranks in several processes of a node fail at prepare",
            "setcap -r on the image's bin/java, and raise limits by ulimit instead; or put the"
                + " ranks of a node into one process",
            new Evidence(STATUS, "belongs to user %s".formatted(owner)),
            status.evidence("Uid:"));
        return;
      }
    } catch (IOException | UnsupportedOperationException e) {
      out.notApplicable("the owner of %s can't be seen: %s".formatted(STATUS, e));
      return;
    }
    out.ok("processes of one user map each other's memory", status.evidence("Uid:"), yama);
  }

  static void shm(Machine machine, Findings out) {
    Reading mounts = machine.read("/proc/self/mounts");
    Optional<String[]> mount =
        mounts
            .lines()
            .map(line -> line.split(" ", -1))
            .filter(words -> words.length >= 4 && words[1].equals("/dev/shm"))
            .reduce((first, second) -> second);
    if (mount.isEmpty()) {
      out.notApplicable("/dev/shm is not mounted; mkernel does not use it", mounts.evidence());
      return;
    }
    Evidence evidence = new Evidence(mounts.path(), String.join(" ", mount.get()));
    long bytes =
        Arrays.stream(mount.get()[3].split(","))
            .filter(option -> option.matches("size=[0-9]{1,15}[kmg]?"))
            .mapToLong(option -> size(option.substring("size=".length())))
            .findFirst()
            .orElse(Long.MAX_VALUE);
    // Said, because people look for it here: other libraries end with a bus error.
    String size = bytes == Long.MAX_VALUE ? "half of memory" : Bytes.text(bytes);
    out.ok(
        "%s; mkernel does not use it: what ranks share is bounded by memory alone".formatted(size),
        evidence);
  }

  private static long size(String text) {
    int shift =
        switch (text.charAt(text.length() - 1)) {
          case 'k' -> 10;
          case 'm' -> 20;
          case 'g' -> 30;
          default -> 0;
        };
    long number = Long.parseLong(shift == 0 ? text : text.substring(0, text.length() - 1));
    return number > Long.MAX_VALUE >> shift ? Long.MAX_VALUE : number << shift;
  }

  static void hugePages(Machine machine, Findings out) {
    Reading memory = machine.read("/proc/meminfo");
    long reserved =
        memory.after("HugePages_Free:").map(Reading::number).orElse(OptionalLong.empty()).orElse(0);
    long size = kibibytes(memory, "Hugepagesize:").orElse(0);
    long total = kibibytes(memory, "MemTotal:").orElse(Long.MAX_VALUE);
    Evidence transparent = machine.read("/sys/kernel/mm/transparent_hugepage/enabled").evidence();
    Evidence shared = machine.read("/sys/kernel/mm/transparent_hugepage/shmem_enabled").evidence();
    if (reserved > 0 && size > 0 && reserved > total / size / 4) {
      out.warning(
          "%d huge pages are set aside and free".formatted(reserved),
          "mkernel uses none of them, and nobody else can use that memory",
          "sysctl vm.nr_hugepages=0, unless another program needs them",
          memory.evidence("HugePages_Free:"),
          memory.evidence("Hugepagesize:"));
    } else if (transparent.value().contains("[never]")) {
      out.warning(
          "huge pages are never used",
          "large tensors then cost more address look-ups",
          "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
          transparent,
          shared);
    } else {
      out.ok("transparent huge pages may be used", transparent, shared);
    }
  }
}
