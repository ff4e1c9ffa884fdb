package org.mkernel.cli;

import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.mkernel.api.Config;
import org.mkernel.api.Failure;
import org.mkernel.api.MKernel;
import org.mkernel.api.UnavailableException;
import org.mkernel.api.UsageException;
import org.mkernel.api.World;
import org.mkernel.api.schedule.Topology;
import org.mkernel.api.spi.CollectiveProvider;
import org.mkernel.api.spi.OperandSpec;
import org.mkernel.api.spi.Problem;
import org.mkernel.cli.io.TensorWriter;
import org.mkernel.runtime.join.Launch;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/**
 * {@code mkernel run OP}: runs an operator over nodes that are emulated in this process, or over
 * the ranks that a launcher started, of which rank 0 reports.
 */
final class RunCommand extends OperatorCommand {
  private final Config config;
  private final Interruption interruption;

  @Option(
      names = "--device",
      description = "auto, host, cuda, or another that info lists (default ${DEFAULT-VALUE})",
      paramLabel = "DEVICE")
  String device = "auto";

  @Option(names = "--seed", description = "of the inputs (default 1)", paramLabel = "SEED")
  long seed = 1;

  @Option(
      names = "--iterations",
      description = "launches (default ${DEFAULT-VALUE})",
      paramLabel = "COUNT")
  int iterations = 5;

  @Option(
      names = "--deadline",
      description = "of one wait, in seconds (default 30)",
      paramLabel = "SECONDS")
  @Nullable String deadline;

  @Option(names = "--lanes", description = "lanes of a role, as compute=2", paramLabel = "ROLE=N")
  Map<String, String> lanes = new LinkedHashMap<>();

  @Option(
      names = "--verify",
      negatable = true,
      defaultValue = "true",
      fallbackValue = "true",
      description = "compare with a double-precision reference (default)")
  boolean verify = true;

  @Option(names = "--json", description = "one JSON document on standard output")
  boolean json;

  @Option(
      names = "--trace",
      description = "a trace for Perfetto: a row for each lane",
      paramLabel = "FILE")
  @Nullable Path trace;

  @Option(
      names = "--input",
      description = "an operand from FILE.npy or FILE.safetensors#TENSOR",
      paramLabel = "NAME=FILE")
  Map<String, String> input = new LinkedHashMap<>();

  @Option(
      names = "--output",
      description = "the output, to FILE.npy or FILE.safetensors",
      paramLabel = "FILE")
  @Nullable Path output;

  @Spec private CommandSpec spec = CommandSpec.create();

  RunCommand(Config config, CollectiveProvider operator, Interruption interruption) {
    super(operator);
    this.config = config;
    this.interruption = interruption;
  }

  @Override
  @Nullable String defaultOption(String name) {
    // An operand that comes from a file is wanted.
    return name.equals("bias") && input.containsKey("bias") ? "true" : null;
  }

  private Config traced() {
    return trace == null ? configured() : configured().option("trace", trace.toString());
  }

  private Config configured() {
    Config changed = config;
    for (Map.Entry<String, String> option : configOptions().entrySet()) {
      changed = changed.option(option.getKey(), option.getValue());
    }
    for (Map.Entry<String, String> role : lanes.entrySet()) {
      changed = changed.option("lanes." + role.getKey(), role.getValue());
    }
    if (!device.equals("auto")) {
      changed = changed.option("device", device);
    }
    if (deadline != null) {
      changed = changed.option("deadline", deadline);
    }
    return changed;
  }

  @Override
  public Integer call() {
    if (iterations < 1) {
      throw new UsageException("--iterations is %d; at least 1 is needed".formatted(iterations));
    }
    checkTrace();
    boolean launched = Launch.of(configured()).isLaunched();
    Finished finished;
    try (MKernel mkernel = MKernel.open(traced());
        Interruption.Guard guard = interruption.guard(mkernel, whatStops())) {
      finished = launched ? joined(mkernel, guard) : local(mkernel, guard);
    }
    OperatorRun.Outcome outcome = finished.outcome();
    boolean right = outcome.verifier().map(v -> v.wrong() == 0).orElse(true);
    if (!finished.reports()) {
      return right ? ExitCode.DONE : ExitCode.WRONG;
    }
    RunReport report =
        new RunReport(operator, finished.problem(), outcome, finished.alone(), iterations);
    PrintWriter out = spec.commandLine().getOut();
    if (json) {
      report.document().printTo(out);
    } else {
      report.print(out);
    }
    return right ? ExitCode.DONE : ExitCode.WRONG;
  }

  /**
   * What a run left.
   *
   * @param problem what was computed
   * @param outcome what came out
   * @param alone how long its halves take
   * @param reports whether this process is the one that says so
   */
  private record Finished(
      Problem problem, OperatorRun.Outcome outcome, AloneTimes alone, boolean reports) {}

  private Finished local(MKernel mkernel, Interruption.Guard guard) {
    Problem problem = problem();
    try (InputData inputs = new InputData(operator, problem, seed, input)) {
      OperatorRun run = operatorRun(problem, inputs);
      OperatorRun.Outcome outcome;
      try (@Nullable TensorWriter writer = writer(problem);
          World world = mkernel.local(nodes, ranksPerNode)) {
        outcome = run.run(world, verify, output != null, writer);
        guard.completed();
      }
      return new Finished(problem, outcome, AloneTimes.measure(configured(), problem, run), true);
    }
  }

  private Finished joined(MKernel mkernel, Interruption.Guard guard) {
    try (World world = mkernel.join()) {
      requireOptionsFit(world.topology());
      Problem problem = problem(world.topology());
      boolean first = world.localRanks().getFirst().index() == 0;
      try (InputData inputs = new InputData(operator, problem, seed, input);
          @Nullable TensorWriter writer = first ? writer(problem) : null) {
        OperatorRun.Outcome outcome =
            operatorRun(problem, inputs).run(world, verify, output != null, writer);
        guard.completed();
        return new Finished(problem, outcome, AloneTimes.NONE, first);
      }
    }
  }

  private OperatorRun operatorRun(Problem problem, InputData inputs) {
    return new OperatorRun(operator, problem, operator.operands(problem), inputs, iterations);
  }

  private @Nullable TensorWriter writer(Problem problem) {
    if (output == null) {
      return null;
    }
    OperandSpec written = OperatorRun.written(operator.operands(problem));
    return TensorWriter.create(output, problem.dtype(), written.rows(), written.columns());
  }

  /** A launcher says where ranks are: options that say otherwise are a mistake. */
  private void requireOptionsFit(Topology topology) {
    boolean nodesGiven = spec.commandLine().getParseResult().hasMatchedOption("--nodes");
    boolean ranksGiven = spec.commandLine().getParseResult().hasMatchedOption("--ranks-per-node");
    if ((nodesGiven && nodes != topology.nodes())
        || (ranksGiven && ranksPerNode * topology.nodes() != topology.size())) {
      throw new UsageException(
          "--nodes and --ranks-per-node say %d and %d, but the launcher started %s"
              .formatted(nodes, ranksPerNode, topology),
          Failure.remedy("leave these options out under a launcher"));
    }
  }

  private String whatStops() {
    return "%s was stopped%s"
        .formatted(operator.name(), output == null ? "" : ", and %s not written".formatted(output));
  }

  /** The trace is written when all is done: what would fail then is better said now. */
  private void checkTrace() {
    if (trace == null) {
      return;
    }
    Path file = trace.toAbsolutePath();
    Path folder = Objects.requireNonNullElse(file.getParent(), file);
    if (!Files.isDirectory(folder)) {
      throw new UsageException("--trace names %s: its folder does not exist".formatted(trace));
    }
    if (Files.exists(file) && !Files.isRegularFile(file)) {
      throw new UsageException("--trace names %s, which is not a regular file".formatted(trace));
    }
    if (!Files.isWritable(Files.exists(file) ? file : folder)) {
      throw new UnavailableException(
          "%s: cannot be written: permission denied".formatted(trace),
          Failure.remedy("name a file that you may write to"));
    }
  }
}
