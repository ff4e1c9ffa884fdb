package org.mkernel.cli;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.mkernel.api.Availability;
import org.mkernel.api.Config;
import org.mkernel.api.DType;
import org.mkernel.api.MKernel;
import org.mkernel.api.PluginInfo;
import org.mkernel.api.UsageException;
import org.mkernel.api.World;
import org.mkernel.api.schedule.Topology;
import org.mkernel.api.spi.CollectiveProvider;
import org.mkernel.api.spi.Problem;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code mkernel bench gemm}: a product on one device against another, in pairs. */
@Command(
    name = "gemm",
    description = "C = A·B of one rank on two devices in turn: medians, and how sure they are",
    mixinStandardHelpOptions = true,
    sortOptions = false)
final class BenchCommand implements Callable<Integer> {
  private static final Pattern SHAPE = Pattern.compile("(\\d{1,9})x(\\d{1,9})x(\\d{1,9})");

  /** Fewer have no interval of 95 %. */
  private static final int FEWEST_PAIRS = 6;

  private final Config config;
  private final CollectiveProvider operator;

  @Option(
      names = "--shape",
      description = "m, n and k; may be given more than once (default ${DEFAULT-VALUE})",
      paramLabel = "MxNxK",
      defaultValue =
          "8192x8192x8192,4096x4096x4096,16384x1024x16384,16384x4096x4096,32768x2048x32768,"
              + "8192x512x8192,8192x8192x512,16384x16384x1024",
      split = ",")
  List<String> shapes = new ArrayList<>();

  @Option(names = "--dtype", description = "f32, f16 or bf16 (default bf16)", paramLabel = "TYPE")
  String dtype = "bf16";

  @Option(names = "--transpose-b", description = "B is n x k")
  boolean transposed;

  @Option(
      names = "--device",
      description = "a device that info lists (default ${DEFAULT-VALUE})",
      paramLabel = "DEVICE")
  String device = "cuda";

  @Option(
      names = "--against",
      description = "another one (default ${DEFAULT-VALUE})",
      paramLabel = "DEVICE")
  String against = "cublas";

  @Option(
      names = "--pairs",
      description = "samples of each, at least 6 (default ${DEFAULT-VALUE})",
      paramLabel = "COUNT")
  int pairs = 15;

  @Option(
      names = "--burst",
      description = "milliseconds of a sample, at least (default ${DEFAULT-VALUE})",
      paramLabel = "MS")
  double burst = 2.5;

  @Option(
      names = "--idle",
      description = "milliseconds before a sample, on the average (default ${DEFAULT-VALUE})",
      paramLabel = "MS")
  double idle = 40;

  @Option(
      names = "--rotate",
      description = "MiB of operands that a sample runs through (default ${DEFAULT-VALUE})",
      paramLabel = "MIB")
  long rotate = 256;

  @Option(names = "--seed", description = "of operands, orders and gaps", paramLabel = "SEED")
  long seed = 1;

  @Option(names = "--json", description = "one JSON document on standard output")
  boolean json;

  @Option(names = "--csv", description = "write every sample", paramLabel = "FILE")
  @Nullable Path csv;

  @Spec private CommandSpec spec = CommandSpec.create();

  BenchCommand(Config config, CollectiveProvider operator) {
    this.config = config;
    this.operator = operator;
  }

  private record Line(Problem problem, GemmDuel.Result result) {
    double teraflops(double nanos) {
      return 2.0 * problem.size("m") * problem.size("n") * problem.size("k") / nanos / 1e3;
    }
  }

  @Override
  public Integer call() {
    requireAtLeast("--pairs", pairs, FEWEST_PAIRS);
    requireAtLeast("--burst", burst, 0);
    requireAtLeast("--idle", idle, 0);
    requireAtLeast("--rotate", (double) rotate, 0);
    List<Problem> problems = shapes.stream().map(this::problem).toList();
    PrintWriter out = spec.commandLine().getOut();
    List<Line> lines = new ArrayList<>();
    for (Problem problem : problems) {
      Line line = new Line(problem, measure(problem));
      lines.add(line);
      if (!json) {
        if (lines.size() == 1) {
          head(out);
        }
        row(out, line);
      }
    }
    if (json) {
      document(lines).printTo(out);
    }
    if (csv != null) {
      write(csv, lines);
    }
    boolean same = lines.stream().allMatch(line -> line.result().different() == 0);
    return same ? ExitCode.DONE : ExitCode.WRONG;
  }

  private static void requireAtLeast(String name, double value, double least) {
    if (!(value >= least)) {
      throw new UsageException("%s is %s; at least %s is needed".formatted(name, value, least));
    }
  }

  private Problem problem(String shape) {
    Matcher matcher = SHAPE.matcher(shape);
    if (!matcher.matches()) {
      throw new UsageException(
          "--shape is \"%s\"; three numbers are needed, as 8192x8192x8192".formatted(shape));
    }
    return new Problem(
        operator.name(),
        Topology.of(1, 1),
        DType.of(dtype),
        Map.of(
            "m", Long.valueOf(matcher.group(1)),
            "n", Long.valueOf(matcher.group(2)),
            "k", Long.valueOf(matcher.group(3))),
        Map.of("transpose-b", Boolean.toString(transposed)));
  }

  private GemmDuel.Result measure(Problem problem) {
    GemmDuel duel =
        new GemmDuel(
            new GemmDuel.Method(
                pairs,
                (long) (burst * TimeUnit.MILLISECONDS.toNanos(1)),
                (long) (idle * TimeUnit.MILLISECONDS.toNanos(1)),
                rotate << 20,
                seed),
            problem,
            operator.operands(problem));
    AtomicReference<GemmDuel.@Nullable Result> result = new AtomicReference<>();
    try (MKernel one = MKernel.open(config.option("device", device));
        MKernel other = MKernel.open(config.option("device", against));
        World world = one.local(1, 1);
        World worldAgainst = other.local(1, 1)) {
      world.eachLocalRank(rank ->
          worldAgainst.eachLocalRank(rankAgainst -> result.set(duel.run(rank, rankAgainst))));
    }
    return Optional.ofNullable(result.get())
        .orElseThrow(() -> new IllegalStateException("nothing was measured"));
  }

  private void head(PrintWriter out) {
    out.printf(
        Locale.ROOT,
        "gemm %s, B %s: %s against %s, %d pairs%n",
        dtype,
        transposed ? "transposed" : "plain",
        device,
        against,
        pairs);
    out.printf(
        Locale.ROOT,
        "%7s %7s %7s  %11s %8s  %11s %8s  %6s  %-15s%n",
        "m",
        "n",
        "k",
        device + " us",
        "TFLOP/s",
        against + " us",
        "TFLOP/s",
        "ratio",
        "95 %");
  }

  private static void row(PrintWriter out, Line line) {
    GemmDuel.Result result = line.result();
    double nanos = MedianInterval.of(result.nanos()).median();
    double nanosAgainst = MedianInterval.of(result.againstNanos()).median();
    MedianInterval ratio = result.ratio();
    out.printf(
        Locale.ROOT,
        "%7d %7d %7d  %11.1f %8.2f  %11.1f %8.2f  %6.3f  %.3f ... %.3f%s%n",
        line.problem().size("m"),
        line.problem().size("n"),
        line.problem().size("k"),
        nanos / 1e3,
        line.teraflops(nanos),
        nanosAgainst / 1e3,
        line.teraflops(nanosAgainst),
        ratio.median(),
        ratio.low(),
        ratio.high(),
        result.different() == 0
            ? ""
            : "  DIFFERENT: %d of %d".formatted(result.different(), result.compared()));
    out.flush();
  }

  private JsonText document(List<Line> lines) {
    return new JsonText()
        .object(document -> {
          document.put("schema", 1);
          document.put("bench", "gemm");
          document.put("device", device);
          document.put("against", against);
          document.put("dtype", dtype);
          document.put("transposeB", transposed);
          document.put("pairs", pairs);
          document.putNumber("burstMs", burst);
          document.putNumber("idleMs", idle);
          document.put("rotateBytes", rotate << 20);
          document.put("seed", seed);
          document.object("environment", this::environment);
          document.array("results", lines, this::result);
        });
  }

  private void environment(JsonText.Fields fields) {
    fields.put("java", Runtime.version().toString());
    fields.put("processors", Runtime.getRuntime().availableProcessors());
    try (MKernel mkernel = MKernel.open(config)) {
      for (PluginInfo plugin : mkernel.plugins()) {
        if (plugin.kind().equals("device")
            && plugin.availability() instanceof Availability.Available available) {
          fields.put(plugin.name(), available.detail());
        }
      }
    }
  }

  private void result(JsonText.Fields fields, Line line) {
    GemmDuel.Result result = line.result();
    fields.put("m", line.problem().size("m"));
    fields.put("n", line.problem().size("n"));
    fields.put("k", line.problem().size("k"));
    fields.put("sets", result.sets());
    fields.object("nanos", interval -> put(interval, MedianInterval.of(result.nanos())));
    fields.object(
        "nanosAgainst", interval -> put(interval, MedianInterval.of(result.againstNanos())));
    fields.object("ratio", interval -> put(interval, result.ratio()));
    fields.put("compared", result.compared());
    fields.put("different", result.different());
  }

  private static void put(JsonText.Fields fields, MedianInterval interval) {
    fields.putNumber("median", interval.median());
    fields.putNumber("low", interval.low());
    fields.putNumber("high", interval.high());
    fields.putNumber("confidence", interval.confidence());
  }

  private void write(Path file, List<Line> lines) {
    List<String> text = new ArrayList<>();
    text.add("m,n,k,dtype,transpose_b,pair,device,nanos");
    for (Line line : lines) {
      String shape =
          "%d,%d,%d,%s,%s"
              .formatted(
                  line.problem().size("m"),
                  line.problem().size("n"),
                  line.problem().size("k"),
                  dtype,
                  transposed);
      for (int pair = 0; pair < pairs; pair++) {
        text.add(sample(shape, pair, device, line.result().nanos()));
        text.add(sample(shape, pair, against, line.result().againstNanos()));
      }
    }
    try {
      Files.write(file, text);
    } catch (IOException e) {
      throw new UncheckedIOException("%s can't be written".formatted(file), e);
    }
  }

  private static String sample(String shape, int pair, String who, double[] nanos) {
    return String.format(Locale.ROOT, "%s,%d,%s,%.0f", shape, pair, who, nanos[pair]);
  }
}
