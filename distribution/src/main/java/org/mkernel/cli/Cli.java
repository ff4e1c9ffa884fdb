package org.mkernel.cli;

import java.io.PrintStream;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.mkernel.api.Config;
import org.mkernel.api.MKernel;
import org.mkernel.api.MKernelException;
import org.mkernel.api.PluginInfo;
import org.mkernel.api.UsageException;
import org.mkernel.api.spi.CollectiveProvider;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.UnmatchedArgumentException;

/** Puts the commands together: each operator that is found becomes a command of run and of plan. */
final class Cli {
  /** Of one rank it is a plain product. */
  private static final String GEMM = "all-gather-gemm";

  private static final String DOCTOR = "doctor";

  private final Config config;
  private final PrintWriter out;
  private final PrintWriter err;
  private final Interruption interruption;

  Cli(Config config, PrintStream out, PrintStream err) {
    this.config = config;
    this.out = new PrintWriter(out, true, StandardCharsets.UTF_8);
    this.err = new PrintWriter(err, true, StandardCharsets.UTF_8);
    this.interruption = new Interruption(this.err);
  }

  /** Runs a command and returns its exit code. Nothing is thrown. */
  int execute(String... args) {
    int code = command(args);
    if (out.checkError() && code != ExitCode.ENVIRONMENT) {
      err.println("mkernel: standard output cannot be written: it is closed, or its disk is full");
      return ExitCode.ENVIRONMENT;
    }
    return code;
  }

  private int command(String... args) {
    if (args.length > 0 && args[0].equals(DOCTOR)) {
      // It opens mkernel by itself: why that fails is what it is asked for.
      return execute(group("mkernel", ""), args);
    }
    try (MKernel mkernel = MKernel.open(config)) {
      List<CollectiveProvider> operators =
          mkernel.plugins().stream()
              .filter(p -> p.kind().equals("collective") && p.availability().isAvailable())
              .map(PluginInfo::name)
              .sorted()
              .map(mkernel::collective)
              .toList();
      CommandLine run = group("run", "prepares, launches and verifies");
      CommandLine plan = group("plan", "shows the schedule, checks it, and predicts its time");
      for (CollectiveProvider operator : operators) {
        run.addSubcommand(
            operator.name(), spec(new RunCommand(config, operator, interruption), operator));
        plan.addSubcommand(operator.name(), spec(new PlanCommand(operator), operator));
      }
      CommandLine bench = group("bench", "compares devices");
      operators.stream()
          .filter(operator -> operator.name().equals(GEMM))
          .forEach(operator -> bench.addSubcommand("gemm", new BenchCommand(config, operator)));
      CommandLine top =
          group("mkernel", "fused collectives on this machine")
              .addSubcommand("info", new InfoCommand(config, mkernel))
              .addSubcommand("run", run)
              .addSubcommand("plan", plan)
              .addSubcommand("bench", bench);
      top.getCommandSpec().version(version());
      return execute(top, args);
    } catch (Exception | Error e) {
      return failed(e);
    }
  }

  private int execute(CommandLine top, String... args) {
    return top.addSubcommand(DOCTOR, new DoctorCommand(config))
        .setOut(out)
        .setErr(err)
        .setCaseInsensitiveEnumValuesAllowed(true)
        .setParameterExceptionHandler(this::badParameters)
        .setExecutionExceptionHandler((e, command, parsed) -> failed(e))
        .execute(args);
  }

  private static String version() {
    String version =
        Cli.class.getModule().getDescriptor() == null
            ? null
            : Cli.class.getModule().getDescriptor().rawVersion().orElse(null);
    return "mkernel " + (version == null ? "(unknown version)" : version);
  }

  private static CommandSpec spec(OperatorCommand command, CollectiveProvider operator) {
    CommandSpec spec = CommandSpec.forAnnotatedObject(command);
    spec.name(operator.name());
    spec.usageMessage().description(operator.description());
    command.declare(spec);
    return spec;
  }

  private int badParameters(ParameterException e, String[] args) {
    CommandLine command = e.getCommandLine();
    String name = command.getCommandSpec().qualifiedName();
    String message = String.valueOf(e.getMessage()).lines().findFirst().orElse("bad arguments");
    boolean group = command.getCommand() instanceof Group;
    if (e instanceof UnmatchedArgumentException unmatched && !unmatched.isUnknownOption()) {
      message =
          "%s has no %s \"%s\""
              .formatted(name, group ? "command" : "argument", unmatched.getUnmatched().getFirst());
    }
    if (group && !message.startsWith("Unknown option")) {
      message += "; allowed are " + String.join(", ", command.getSubcommands().keySet());
    }
    err.println("mkernel: " + oneLine(message) + "; see " + name + " --help");
    return ExitCode.USAGE;
  }

  private int failed(Throwable e) {
    if (interruption.happened()) {
      return ExitCode.ENVIRONMENT; // It is said once, by who noticed it.
    }
    if (e instanceof UsageException bad) {
      String remedy = bad.failure().remedy().map(r -> "; " + r).orElse("");
      err.println("mkernel: " + oneLine(bad.getMessage() + remedy));
      return ExitCode.USAGE;
    }
    if (e instanceof MKernelException known) {
      err.println("mkernel: " + oneLine(known.getMessage()));
      known
          .failure()
          .remedy()
          .ifPresent(remedy -> err.println("         remedy: " + oneLine(remedy)));
      return ExitCode.ENVIRONMENT;
    }
    if (e instanceof OutOfMemoryError) {
      err.println("mkernel: out of memory: " + oneLine(e.getMessage()));
      err.println("         remedy: set MKERNEL_JAVA_OPTIONS=-Xmx… higher, or take smaller sizes");
      return ExitCode.ENVIRONMENT;
    }
    err.println("mkernel: this is a fault of mkernel: " + oneLine(e.toString()));
    for (StackTraceElement frame : e.getStackTrace()) {
      err.println("         at " + frame);
    }
    return ExitCode.ENVIRONMENT;
  }

  private static String oneLine(@org.jspecify.annotations.Nullable String text) {
    return String.valueOf(text).replaceAll("\\s*\\R\\s*", " ");
  }

  private static CommandLine group(String name, String description) {
    CommandSpec spec = CommandSpec.forAnnotatedObject(new Group());
    spec.name(name).usageMessage().description(description);
    return new CommandLine(spec);
  }

  /** A command that only has commands. */
  @Command(mixinStandardHelpOptions = true, synopsisSubcommandLabel = "COMMAND")
  private static final class Group implements Runnable {
    @CommandLine.Spec private CommandSpec spec = CommandSpec.create();

    @Override
    public void run() {
      throw new ParameterException(spec.commandLine(), spec.qualifiedName() + " needs a command");
    }
  }
}
