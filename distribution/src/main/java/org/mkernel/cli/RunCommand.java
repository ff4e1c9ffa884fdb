package org.mkernel.cli;

import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;
import org.mkernel.api.Config;
import org.mkernel.api.MKernel;
import org.mkernel.api.OperationReport;
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
      description = "write a trace for Perfetto: a row per lane",
      paramLabel = "FILE")
  @Nullable Path trace;

  @Option(
      names = "--input",
      description = "an operand from a file: .npy, or .safetensors#TENSOR",
      paramLabel = "NAME=FILE")
  Map<String, String> input = new LinkedHashMap<>();

  @Option(
      names = "--output",
      description = "write the output: .npy, or .safetensors",
      paramLabel = "FILE")
  @Nullable Path output;

  @Spec private CommandSpec spec = CommandSpec.create();

  RunCommand(Config config, CollectiveProvider operator) {
    super(operator);
    this.config = config;
  }

  @Override
  @Nullable String defaultOption(String name) {
    // An operand that comes from a file is wanted.
    return name.equals("bias") && input.containsKey("bias") ? "true" : null;
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
    if (trace != null) {
      changed = changed.option("trace", trace.toString());
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
    OperatorRun.Outcome outcome;
    try (InputData inputs = new InputData(problem, operands, seed, input);
        MKernel mkernel = MKernel.open(configured());
        InterruptGuard guard = new InterruptGuard(mkernel)) {
      guard.arm();
      OperandSpec written = OperatorRun.written(operands);
      try (@Nullable TensorWriter writer =
              output == null
                  ? null
                  : TensorWriter.create(
                      output, problem.dtype(), written.rows(), written.columns());
          World world = mkernel.local(nodes, ranksPerNode)) {
        outcome =
            new OperatorRun(operator, problem, operands, inputs, iterations)
                .run(world, verify, writer);
      }
    }
    PrintWriter out = spec.commandLine().getOut();
    if (json) {
      document(problem, outcome).printTo(out);
    } else {
      table(problem, outcome, out);
    }
    boolean right = outcome.verifier().map(v -> v.wrong() == 0).orElse(true);
    return right ? ExitCode.DONE : ExitCode.WRONG;
  }

  /** Closes mkernel when the process is interrupted, so that lanes and proxies end in order. */
  private static final class InterruptGuard implements AutoCloseable {
    private final Thread hook;
    private final AtomicReference<@Nullable MKernel> guarded;

    InterruptGuard(MKernel mkernel) {
      this.guarded = new AtomicReference<>(mkernel);
      this.hook =
          new Thread(
              () -> {
                MKernel open = guarded.getAndSet(null);
                if (open != null) {
                  open.close();
                }
              },
              "mkernel-interrupted");
    }

    void arm() {
      Runtime.getRuntime().addShutdownHook(hook);
    }

    @Override
    public void close() {
      if (guarded.getAndSet(null) != null) {
        boolean _ = Runtime.getRuntime().removeShutdownHook(hook);
      }
    }
  }

  private JsonText document(Problem problem, OperatorRun.Outcome outcome) {
    OperationReport report = outcome.report();
    Optional<Verifier> verifier = outcome.verifier();
    BiConsumer<JsonText.Fields, OperationReport.Choice> transport =
        (fields, choice) -> {
          fields.put("name", choice.name());
          fields.put("reason", choice.reason());
          fields.put("emulated", choice.emulated());
        };
    return new JsonText()
        .object(json -> {
          json.put("schema", 1);
          json.put("operator", operator.name());
          json.put("nodes", nodes);
          json.put("ranksPerNode", ranksPerNode);
          json.put("world", problem.topology().size());
          json.put("device", report.device());
          json.put("dtype", problem.dtype().label());
          json.object(
              "shape",
              shape -> operator.sizes().keySet().forEach(s -> shape.put(s, problem.size(s))));
          json.object(
              "transport",
              both -> {
                choice(both, "intra", report.intra(), transport);
                choice(both, "inter", report.inter(), transport);
              });
          if (verifier.isPresent()) {
            json.put("verified", verifier.get().wrong() == 0);
            json.put("wrong", verifier.get().wrong());
            json.putNumber("maxAbsError", verifier.get().maxError());
            json.put("elements", verifier.get().elements());
          } else {
            json.putNull("verified");
            json.putNull("wrong");
            json.putNull("maxAbsError");
            json.putNull("elements");
          }
          json.put("digest", outcome.digest());
          json.object(
              "timesMs",
              times -> {
                times.putNumber("plan", report.planNanos() / 1e6);
                times.putNumber("check", report.checkNanos() / 1e6);
                times.putNumber("fused", outcome.launchNanos() / 1e6);
                times.putNull("computeAlone");
                times.putNull("communicationAlone");
              });
          json.object(
              "bytes",
              bytes -> {
                bytes.put("intra", report.intraBytes());
                bytes.put("inter", report.interBytes());
                bytes.put("interExpected", operator.interNodeBytes(problem));
              });
          json.put("tasks", report.tasks());
          json.strings("lanes", report.lanes());
        });
  }

  private static void choice(
      JsonText.Fields both,
      String name,
      Optional<OperationReport.Choice> choice,
      BiConsumer<JsonText.Fields, OperationReport.Choice> each) {
    if (choice.isPresent()) {
      both.object(name, fields -> each.accept(fields, choice.get()));
    } else {
      both.putNull(name);
    }
  }

  private void table(Problem problem, OperatorRun.Outcome outcome, PrintWriter out) {
    OperationReport report = outcome.report();
    out.printf("%s: %s%n", operator.name(), operator.description());
    line(out, "world", "%d nodes x %d ranks, device %s", nodes, ranksPerNode, report.device());
    StringBuilder shape = new StringBuilder(problem.dtype().label());
    operator
        .sizes()
        .keySet()
        .forEach(s -> shape.append(", ").append(s).append(' ').append(problem.size(s)));
    line(out, "shape", "%s", shape);
    report.intra().ifPresent(c -> line(out, "inside a node", "%s: %s", c.name(), c.reason()));
    report
        .inter()
        .ifPresent(c ->
            line(
                out,
                "between nodes",
                "%s%s: %s",
                c.name(),
                c.emulated() ? " (emulated)" : "",
                c.reason()));
    line(
        out,
        "schedule",
        "%d tasks, lanes %s; planned in %.1f ms, proven in %.1f ms",
        report.tasks(),
        String.join(", ", report.lanes()),
        report.planNanos() / 1e6,
        report.checkNanos() / 1e6);
    line(
        out,
        "bytes",
        "%d inside nodes, %d between nodes (at least %d)",
        report.intraBytes(),
        report.interBytes(),
        operator.interNodeBytes(problem));
    double seconds = outcome.launchNanos() / 1e9;
    double flops = operator.flops(problem);
    line(
        out,
        "time",
        "%.3f ms, median of %d%s",
        seconds * 1e3,
        iterations,
        flops > 0 ? ", %.1f GFLOP/s in all".formatted(flops / seconds / 1e9) : "");
    line(out, "digest", "%s", outcome.digest());
    outcome
        .verifier()
        .ifPresentOrElse(
            v ->
                line(
                    out,
                    v.wrong() == 0 ? "verified" : "WRONG",
                    "%d of %d elements are wrong (%s), largest error %.3g",
                    v.wrong(),
                    v.elements(),
                    v.isExact() ? "every bit counts" : "within rounding",
                    v.maxError()),
            () -> line(out, "verified", "no: not asked for"));
  }

  @SuppressWarnings("AnnotateFormatMethod") // Its annotations are not a dependency.
  private static void line(PrintWriter out, String name, String format, Object... values) {
    out.printf("  %-14s %s%n", name, format.formatted(values));
  }
}
