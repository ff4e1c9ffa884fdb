package org.mkernel.cli.doctor;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import org.mkernel.api.UsageException;
import org.mkernel.cli.doctor.Finding.Evidence;
import org.mkernel.runtime.join.Endpoint;
import org.mkernel.runtime.join.Launch;

/** What a launcher said, and whether ranks can meet by it. */
final class LaunchProbes {
  private static final int LEAST_SECRET = 16;

  /** Where rendezvous ports are derived from the number of a job. */
  private static final int FIRST_PORT = 12000;

  private static final int LAST_PORT = 27999;

  private LaunchProbes() {}

  private static Optional<Launch> launch(Machine machine) {
    try {
      return Optional.of(Launch.detect(machine.environment()));
    } catch (UsageException e) {
      return Optional.empty(); // The probe `launcher` says so.
    }
  }

  static void launcher(Machine machine, Findings out) {
    try {
      Launch launch = Launch.detect(machine.environment());
      Evidence[] evidence =
          launch.origins().stream()
              .map(origin -> new Evidence(origin.source(), origin.what() + " " + origin.value()))
              .toArray(Evidence[]::new);
      if (!launch.isLaunched() && evidence.length > 1) {
        out.warning(
            "inside a Slurm allocation, but not started by srun",
            "each process is a world of its own",
            "start it with srun",
            evidence);
      } else {
        out.ok(
            launch.isLaunched()
                ? "%s: rank %d of %d".formatted(launch.launcher(), launch.rank(), launch.size())
                : "none: a world of one process",
            evidence);
      }
    } catch (UsageException e) {
      out.error(
          String.valueOf(e.getMessage()),
          "ranks would not meet",
          e.failure().remedy().orElse("correct the variable"));
    }
  }

  static void rendezvous(Machine machine, Findings out) {
    Optional<Endpoint> endpoint = launch(machine).flatMap(Launch::rendezvous);
    if (endpoint.isEmpty()) {
      out.notApplicable("no world of several processes");
      return;
    }
    String host = endpoint.get().host();
    Optional<String> entry =
        machine
            .read("/etc/hosts")
            .lines()
            .map(line -> line.replaceFirst("#.*", "").strip())
            .filter(line -> Arrays.asList(line.split("\\s+")).indexOf(host) > 0)
            .filter(line -> line.startsWith("127.") || line.startsWith("::1"))
            .findFirst();
    if (entry.isPresent() && !host.equals("localhost")) {
      out.error(
          "%s is a loopback address on this host".formatted(host),
          "rank 0 would listen where ranks of other hosts can't reach it",
          "take the name off that line of /etc/hosts, or set MKERNEL_RENDEZVOUS to an address of"
              + " rank 0's host, alike for all ranks",
          new Evidence("/etc/hosts", entry.get()));
    } else {
      out.ok(
          "ranks meet at " + endpoint.get(), new Evidence("rendezvous", endpoint.get().toString()));
    }
  }

  static void secret(Machine machine, Findings out) {
    Optional<String> file = machine.variable("MKERNEL_SECRET_FILE");
    Optional<String> text = machine.variable("MKERNEL_SECRET");
    String fresh = "openssl rand -hex 32 > FILE; chmod 600 FILE; MKERNEL_SECRET_FILE=FILE";
    if (file.isPresent() && text.isPresent()) {
      out.error(
          "MKERNEL_SECRET and MKERNEL_SECRET_FILE are both set",
          "joining refuses to guess which one counts",
          "unset one",
          machine.variableEvidence("MKERNEL_SECRET_FILE"));
    } else if (text.isPresent() && text.get().length() < LEAST_SECRET) {
      out.error(
          "the secret has %d characters".formatted(text.get().length()),
          "at least %d are needed".formatted(LEAST_SECRET),
          fresh);
    } else if (file.isPresent()) {
      secretFile(machine, out, file.get(), fresh);
    } else if (text.isPresent()) {
      out.ok("a secret in MKERNEL_SECRET");
    } else {
      Optional<Endpoint> endpoint = launch(machine).flatMap(Launch::rendezvous);
      boolean far =
          endpoint
              .map(Endpoint::host)
              .filter(host -> !host.equals("localhost"))
              .filter(host -> !host.startsWith("127.") && !host.equals("::1"))
              .isPresent();
      if (far) {
        out.error(
            "no secret, but ranks meet at " + endpoint.get(),
            "without one, nothing listens beyond loopback",
            fresh + ", alike for all ranks",
            machine.variableEvidence("MKERNEL_SECRET_FILE"));
      } else {
        out.ok("none, and none is needed on one host");
      }
    }
  }

  private static void secretFile(Machine machine, Findings out, String file, String fresh) {
    Path path = machine.at(file.startsWith("/") ? file : "/" + file);
    Evidence evidence = machine.variableEvidence("MKERNEL_SECRET_FILE");
    OptionalLong size = size(path);
    if (size.isEmpty() || !Files.isReadable(path)) {
      out.error("the secret file can't be read", "joining needs what is in it", fresh, evidence);
    } else if (isOpenToOthers(path, false)) {
      out.error(
          "the secret file is open to others",
          "joining refuses a secret that others may know",
          "chmod 600 " + file,
          evidence);
    } else if (size.getAsLong() < LEAST_SECRET) {
      out.error(
          "the secret file has %d bytes".formatted(size.getAsLong()),
          "at least %d are needed".formatted(LEAST_SECRET),
          fresh,
          evidence);
    } else {
      out.ok("a secret in a file", evidence);
    }
  }

  private static OptionalLong size(Path file) {
    try {
      return Files.isRegularFile(file) ? OptionalLong.of(Files.size(file)) : OptionalLong.empty();
    } catch (IOException e) {
      return OptionalLong.empty();
    }
  }

  /** Whether others may write a file, or, unless only writing counts, read it. */
  static boolean isOpenToOthers(Path file, boolean onlyWriting) {
    try {
      Set<PosixFilePermission> rights = Files.getPosixFilePermissions(file);
      return rights.contains(PosixFilePermission.OTHERS_WRITE)
          || (!onlyWriting
              && (rights.contains(PosixFilePermission.OTHERS_READ)
                  || rights.contains(PosixFilePermission.GROUP_WRITE)));
    } catch (IOException | UnsupportedOperationException e) {
      return false;
    }
  }

  static void ports(Machine machine, Findings out) {
    Reading range = machine.read("/proc/sys/net/ipv4/ip_local_port_range");
    Reading backlog = machine.read("/proc/sys/net/core/somaxconn");
    List<OptionalLong> ends =
        Arrays.stream(range.value().split("\\s+")).map(Reading::number).toList();
    Optional<Launch> launch = launch(machine).filter(l -> l.size() > 1);
    if (launch.isPresent() && backlog.number().orElse(Long.MAX_VALUE) < launch.get().size()) {
      out.warning(
          "%s connections may wait to be accepted".formatted(backlog.value()),
          "all ranks come to rank 0 at once: those that find no place try again, and joining takes"
              + " longer",
          "sysctl net.core.somaxconn=4096 on rank 0's host",
          backlog.evidence());
    } else if (ends.size() == 2
        && ends.get(0).orElse(LAST_PORT + 1) <= LAST_PORT
        && ends.get(1).orElse(0) >= FIRST_PORT) {
      out.warning(
          "programs are given ports between %d and %d".formatted(FIRST_PORT, LAST_PORT),
          "a rendezvous port that is derived from a job's number lies there, and may be taken",
          "set MKERNEL_RENDEZVOUS to a port outside the range, or sysctl"
              + " net.ipv4.ip_local_port_range=\"32768 60999\"",
          range.evidence());
    } else {
      out.ok("rendezvous ports are free of what programs are given", range.evidence());
    }
  }
}
