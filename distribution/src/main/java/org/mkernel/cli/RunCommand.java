package org.mkernel.cli;

import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.mkernel.api.Config;
import org.mkernel.api.Failure;
import org.mkernel.api.MKernel;
import org.mkernel.api.UnavailableException;
import org.mkernel.api.UsageException;
import org.mkernel.api.World;
import org.mkernel.api.spi.CollectiveProvider;
import org.mkernel.api.spi.OperandSpec;
import org.mkernel.api.spi.Problem;
import org.mkernel.cli.io.TensorWriter;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code mkernel run OP}: runs an operator over nodes that are emulated in this process. */
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
    Problem problem = problem();
    List<OperandSpec> operands = operator.operands(problem);
    checkTrace();
    OperatorRun.Outcome outcome;
    AloneTimes alone;
    try (InputData inputs = new InputData(operator, problem, seed, input);
        MKernel mkernel = MKernel.open(traced());
        Interruption.Guard guard = interruption.guard(mkernel, whatStops())) {
      OperatorRun run = new OperatorRun(operator, problem, operands, inputs, iterations);
      OperandSpec written = OperatorRun.written(operands);
      try (@Nullable TensorWriter writer =
              output == null
                  ? null
                  : TensorWriter.create(
                      output, problem.dtype(), written.rows(), written.columns());
          World world = mkernel.local(nodes, ranksPerNode)) {
        outcome = run.run(world, verify, writer);
        guard.completed();
      }
      alone = AloneTimes.measure(configured(), problem, run);
    }
    RunReport report = new RunReport(operator, problem, outcome, alone, iterations);
    PrintWriter out = spec.commandLine().getOut();
    if (json) {
      report.document().printTo(out);
    } else {
      report.print(out);
    }
    boolean right = outcome.verifier().map(v -> v.wrong() == 0).orElse(true);
    return right ? ExitCode.DONE : ExitCode.WRONG;
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
