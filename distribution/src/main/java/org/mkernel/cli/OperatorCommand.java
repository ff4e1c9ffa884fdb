package org.mkernel.cli;

import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.Callable;
import org.mkernel.api.DType;
import org.mkernel.api.UsageException;
import org.mkernel.api.schedule.Topology;
import org.mkernel.api.spi.CollectiveProvider;
import org.mkernel.api.spi.Problem;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.Option;

/** What run and plan share: the world, and the problem from the options that the operator names. */
@Command(mixinStandardHelpOptions = true, sortOptions = false, abbreviateSynopsis = true)
abstract class OperatorCommand implements Callable<Integer> {
  private static final Map<String, Long> USUAL_SIZES = Map.of("m", 1024L, "n", 512L, "k", 512L);
  private static final long OTHER_SIZE = 256;

  /** Where help shows the operator's own options: before those that have no place. */
  private static final int FIRST = -1000;

  final CollectiveProvider operator;
  private final Map<String, OptionSpec> sizes = new LinkedHashMap<>();
  private final Map<String, OptionSpec> options = new LinkedHashMap<>();

  @Option(names = "--nodes", description = "nodes (default ${DEFAULT-VALUE})", paramLabel = "N")
  int nodes = 2;

  @Option(
      names = "--ranks-per-node",
      description = "ranks on each (default ${DEFAULT-VALUE})",
      paramLabel = "R")
  int ranksPerNode = 2;

  @Option(names = "--dtype", description = "f32, f16 or bf16 (default f32)", paramLabel = "TYPE")
  String dtype = "f32";

  @Option(
      names = "-o",
      description = "any other option, of the operator, a transport or the runtime",
      paramLabel = "NAME=VALUE")
  Map<String, String> others = new LinkedHashMap<>();

  OperatorCommand(CollectiveProvider operator) {
    this.operator = operator;
  }

  /** Adds the options that the operator names. */
  final void declare(CommandSpec spec) {
    operator
        .sizes()
        .forEach((name, description) -> {
          OptionSpec option =
              OptionSpec.builder("--" + name)
                  .order(FIRST + sizes.size())
                  .type(Long.class)
                  .paramLabel(name.toUpperCase(java.util.Locale.ROOT))
                  .description(
                      "%s (default %d)"
                          .formatted(description, USUAL_SIZES.getOrDefault(name, OTHER_SIZE)))
                  .build();
          sizes.put(name, option);
          spec.addOption(option);
        });
    for (org.mkernel.api.spi.OptionSpec own : operator.options()) {
      boolean flag = own.allowed().contains("true") && own.allowed().size() == 2;
      OptionSpec.Builder option =
          OptionSpec.builder("--" + own.name())
              .order(FIRST + sizes.size() + options.size())
              .type(String.class)
              .description("%s (default %s)".formatted(own.description(), own.defaultValue()))
              .paramLabel(own.allowed().isEmpty() ? "VALUE" : String.join("|", own.allowed()));
      if (flag) {
        option.arity("0..1").fallbackValue("true");
      }
      OptionSpec built = option.build();
      options.put(own.name(), built);
      spec.addOption(built);
    }
  }

  /** The problem that the options describe. Options of {@code -o} that are not its own are left. */
  final Problem problem() {
    return problem(Topology.of(nodes, ranksPerNode));
  }

  /** As {@link #problem()}, for ranks that a launcher started. */
  final Problem problem(Topology topology) {
    Map<String, Long> extents = new HashMap<>();
    sizes.forEach((name, option) -> {
      Long given = option.getValue();
      extents.put(name, given == null ? defaultSize(name) : given);
    });
    Map<String, String> chosen = new HashMap<>();
    options.forEach((name, option) -> {
      String given = option.getValue();
      if (given != null) {
        chosen.put(name, given);
      } else if (others.containsKey(name)) {
        chosen.put(name, others.get(name));
      } else if (defaultOption(name) != null) {
        chosen.put(name, defaultOption(name));
      }
    });
    return new Problem(operator.name(), topology, DType.of(dtype), extents, chosen);
  }

  /** The size of an extent that was not given. */
  long defaultSize(String name) {
    return USUAL_SIZES.getOrDefault(name, OTHER_SIZE);
  }

  /** The value of an option of the operator that was not given; null for its own default. */
  @org.jspecify.annotations.Nullable
  String defaultOption(String name) {
    return null;
  }

  /** Options of {@code -o} that are for a transport or the runtime. */
  final Map<String, String> configOptions() {
    Map<String, String> rest = new LinkedHashMap<>();
    others.forEach((name, value) -> {
      if (options.containsKey(name)) {
        return;
      }
      if (!name.contains(".") && !RUNTIME_OPTIONS.contains(name)) {
        throw new UsageException(
            "option \"%s\" is unknown; allowed are %s of %s, %s, and names of a transport or role"
                    .formatted(name, options.keySet(), operator.name(), RUNTIME_OPTIONS)
                + " such as emulated.bandwidth and lanes.compute");
      }
      rest.put(name, value);
    });
    return rest;
  }

  private static final java.util.SortedSet<String> RUNTIME_OPTIONS =
      new java.util.TreeSet<>(
          java.util.Set.of(
              "deadline", "device", "intra-transport", "join-deadline", "plugins", "transport"));
}
