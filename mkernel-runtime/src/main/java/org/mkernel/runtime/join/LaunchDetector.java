package org.mkernel.runtime.join;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import org.mkernel.api.Failure;
import org.mkernel.api.UsageException;

/**
 * Finds the launcher by its variables, innermost first: a launcher may itself have been started by
 * another one. {@code MKERNEL_RANK} rules out all others; without it, {@code MKERNEL_WORLD_SIZE},
 * {@code MKERNEL_NODE} and {@code MKERNEL_RENDEZVOUS} add what a launcher leaves open.
 */
final class LaunchDetector {
  private static final String RANK = "MKERNEL_RANK";
  private static final String SIZE = "MKERNEL_WORLD_SIZE";
  private static final String NODE = "MKERNEL_NODE";
  private static final String RENDEZVOUS = "MKERNEL_RENDEZVOUS";
  private static final int MAX_SIZE = 65536;

  /** Derived ports lie below those that Linux hands out by itself. */
  private static final int FIRST_PORT = 12000;

  private static final int PORTS = 16000;

  private final Map<String, String> environment;
  private final List<Launch.Origin> origins = new ArrayList<>();

  LaunchDetector(Map<String, String> environment) {
    this.environment = environment;
  }

  Launch detect() {
    if (has(RANK)) {
      return launch("explicit", RANK, SIZE, "", Optional.empty());
    }
    if (has("TORCHELASTIC_RUN_ID") || (has("RANK") && has("WORLD_SIZE"))) {
      return torchrun();
    }
    if (has("OMPI_COMM_WORLD_RANK")) {
      return openMpi();
    }
    if (has("SLURM_PROCID") && (has("SLURM_STEP_ID") || has("SLURM_STEPID"))) {
      return slurm();
    }
    if (has("PMIX_RANK")) {
      return launch("pmix", "PMIX_RANK", SIZE, "", Optional.empty());
    }
    if (has("JOB_COMPLETION_INDEX")) {
      return launch("kubernetes", "JOB_COMPLETION_INDEX", SIZE, "", Optional.empty());
    }
    return alone();
  }

  private Launch alone() {
    if (has(SIZE) && number(SIZE, 1, MAX_SIZE) != 1) {
      throw missing(RANK, "%s is %s".formatted(SIZE, value(SIZE)));
    }
    origins.add(new Launch.Origin("world", "1", "no launcher was found"));
    if (has("SLURM_JOB_ID") && has("SLURM_NTASKS")) {
      origins.add(
          new Launch.Origin("note", "inside a Slurm allocation", "but not started by srun"));
    }
    return new Launch(Launch.NONE, 0, 1, OptionalInt.empty(), Optional.empty(), origins);
  }

  private Launch torchrun() {
    boolean torchrun = has("TORCHELASTIC_RUN_ID");
    if (!torchrun) {
      // The names are common: a stale pair must not overrule a launcher that knows better.
      agree("RANK", "OMPI_COMM_WORLD_RANK");
      agree("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE");
      if (!has("OMPI_COMM_WORLD_RANK") && has("SLURM_STEP_ID")) {
        agree("RANK", "SLURM_PROCID");
        agree("WORLD_SIZE", slurmSize());
      }
    }
    Optional<Derived> rendezvous = Optional.empty();
    if (has("MASTER_ADDR") && has("MASTER_PORT")) {
      int port = number("MASTER_PORT", 1, 65534);
      // torchrun's own store listens on that port.
      boolean taken = "True".equalsIgnoreCase(value("TORCHELASTIC_USE_AGENT_STORE"));
      rendezvous =
          Optional.of(
              new Derived(
                  new Endpoint(value("MASTER_ADDR"), taken ? port + 1 : port),
                  taken
                      ? "MASTER_ADDR and MASTER_PORT + 1: the port itself is torchrun's"
                      : "MASTER_ADDR and MASTER_PORT"));
    }
    return launch(
        torchrun ? "torchrun" : "torchrun-style", "RANK", "WORLD_SIZE", "GROUP_RANK", rendezvous);
  }

  private Launch openMpi() {
    Optional<Derived> rendezvous = Optional.empty();
    if (value("OMPI_COMM_WORLD_SIZE").equals(value("OMPI_COMM_WORLD_LOCAL_SIZE"))) {
      String job = firstOf("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_hnp_uri");
      rendezvous =
          Optional.of(
              new Derived(
                  new Endpoint("127.0.0.1", port(value(job))),
                  "all ranks are on this host; the port is derived from " + job));
    }
    return launch("openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "", rendezvous);
  }

  private Launch slurm() {
    String list = firstOf("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST");
    Optional<Derived> rendezvous = Optional.empty();
    if (has(list)) {
      String step = firstOf("SLURM_STEP_ID", "SLURM_STEPID");
      String id = value("SLURM_JOB_ID") + "." + value(step);
      rendezvous =
          Optional.of(
              new Derived(
                  new Endpoint(firstHost(list), port(id)),
                  "the first of %s; the port is derived from SLURM_JOB_ID and %s"
                      .formatted(list, step)));
    }
    return launch("slurm", "SLURM_PROCID", slurmSize(), "SLURM_NODEID", rendezvous);
  }

  private String slurmSize() {
    return firstOf("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS");
  }

  private record Derived(Endpoint endpoint, String source) {}

  private Launch launch(
      String launcher,
      String rankVariable,
      String sizeVariable,
      String nodeVariable,
      Optional<Derived> derived) {
    String because = "the launcher is " + launcher;
    if (!has(sizeVariable)) {
      throw missing(sizeVariable, "%s is \"%s\"".formatted(rankVariable, value(rankVariable)));
    }
    int size = number(sizeVariable, 1, MAX_SIZE);
    int rank = number(rankVariable, 0, size - 1);
    agree(sizeVariable, SIZE);
    origins.add(new Launch.Origin("rank", Integer.toString(rank), rankVariable));
    origins.add(new Launch.Origin("world", Integer.toString(size), sizeVariable));
    OptionalInt node = OptionalInt.empty();
    String nodeSource = has(NODE) ? NODE : nodeVariable;
    if (has(nodeSource)) {
      node = OptionalInt.of(number(nodeSource, 0, size - 1));
      origins.add(new Launch.Origin("node", Integer.toString(node.getAsInt()), nodeSource));
    } else {
      origins.add(new Launch.Origin("node", "as the hosts are", "found when ranks meet"));
    }
    Optional<Endpoint> rendezvous = Optional.empty();
    if (has(RENDEZVOUS)) {
      rendezvous = Optional.of(Endpoint.parse(RENDEZVOUS, value(RENDEZVOUS)));
      origins.add(new Launch.Origin("rendezvous", rendezvous.get().toString(), RENDEZVOUS));
    } else if (derived.isPresent() && size > 1) {
      rendezvous = Optional.of(derived.get().endpoint());
      origins.add(
          new Launch.Origin("rendezvous", rendezvous.get().toString(), derived.get().source()));
    } else if (size > 1) {
      throw missing(RENDEZVOUS, because);
    }
    return new Launch(launcher, rank, size, node, rendezvous, origins);
  }

  private String value(String variable) {
    return environment.getOrDefault(variable, "");
  }

  private boolean has(String variable) {
    return !value(variable).isEmpty();
  }

  /** The first variable that is set, or the first of all. */
  private String firstOf(String... variables) {
    for (String variable : variables) {
      if (has(variable)) {
        return variable;
      }
    }
    return variables[0];
  }

  private int number(String variable, int least, int most) {
    String text = value(variable);
    try {
      int value = Integer.parseInt(text);
      if (value >= least && value <= most) {
        return value;
      }
    } catch (NumberFormatException e) {
      // Reported below, with the text.
    }
    throw new UsageException(
        "%s is \"%s\"; a whole number from %d to %d is needed"
            .formatted(variable, text, least, most),
        Failure.remedy("let the launcher set it, or set it for each rank"));
  }

  /** Two variables that are both set must say the same. */
  private void agree(String one, String other) {
    if (has(one) && has(other) && !value(one).equals(value(other))) {
      throw new UsageException(
          "%s is \"%s\" but %s is \"%s\"; they must be equal"
              .formatted(one, value(one), other, value(other)),
          Failure.remedy(
              "unset the stale one, or set %s, %s and %s, which overrule all others"
                  .formatted(RANK, SIZE, RENDEZVOUS)));
    }
  }

  private static UsageException missing(String variable, String because) {
    String value =
        switch (variable) {
          case RANK -> "this process's rank, from 0";
          case RENDEZVOUS -> "host:port of rank 0, alike for all ranks";
          default -> "the number of ranks, alike for all ranks";
        };
    return new UsageException(
        "%s is not set, while %s".formatted(variable, because),
        Failure.remedy("set %s to %s".formatted(variable, value)));
  }

  private static int port(String id) {
    return FIRST_PORT + Math.floorMod(id.hashCode(), PORTS);
  }

  /** The first host of a list such as {@code node[01-04,07],gpu3}. */
  private String firstHost(String variable) {
    String list = value(variable);
    StringBuilder host = new StringBuilder();
    for (int at = 0; at < list.length() && list.charAt(at) != ','; at++) {
      if (list.charAt(at) != '[') {
        host.append(list.charAt(at));
        continue;
      }
      int close = list.indexOf(']', at);
      if (close < 0) {
        throw new UsageException(
            "%s is \"%s\"; a list of hosts such as node[01-04,07] is needed"
                .formatted(variable, list),
            Failure.remedy("set %s to host:port of rank 0".formatted(RENDEZVOUS)));
      }
      host.append(list.substring(at + 1, close).split("[,-]", 2)[0]);
      at = close;
    }
    return host.toString();
  }
}
