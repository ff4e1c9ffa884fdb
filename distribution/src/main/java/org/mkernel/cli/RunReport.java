package org.mkernel.cli;

import java.io.PrintWriter;
import java.util.Locale;
import java.util.Optional;
import java.util.OptionalLong;
import org.mkernel.api.OperationReport;
import org.mkernel.api.spi.CollectiveProvider;
import org.mkernel.api.spi.Problem;

/** What {@code mkernel run} prints: a document for programs, or a table for people. */
final class RunReport {
  private final CollectiveProvider operator;
  private final Problem problem;
  private final OperatorRun.Outcome outcome;
  private final AloneTimes alone;
  private final int iterations;

  RunReport(
      CollectiveProvider operator,
      Problem problem,
      OperatorRun.Outcome outcome,
      AloneTimes alone,
      int iterations) {
    this.operator = operator;
    this.problem = problem;
    this.outcome = outcome;
    this.alone = alone;
    this.iterations = iterations;
  }

  private int nodes() {
    return problem.topology().nodes();
  }

  private int ranksPerNode() {
    return problem.topology().size() / nodes();
  }

  JsonText document() {
    OperationReport report = outcome.report();
    return new JsonText()
        .object(json -> {
          json.put("schema", 1);
          json.put("operator", operator.name());
          json.put("nodes", nodes());
          json.put("ranksPerNode", ranksPerNode());
          json.put("world", problem.topology().size());
          json.put("device", report.device());
          json.put("dtype", problem.dtype().label());
          json.object(
              "shape",
              shape -> operator.sizes().keySet().forEach(s -> shape.put(s, problem.size(s))));
          json.object(
              "transport",
              both -> {
                choice(both, "intra", report.intra());
                choice(both, "inter", report.inter());
              });
          verdict(json);
          json.put("digest", outcome.digest());
          json.object(
              "timesMs",
              times -> {
                times.putNumber("plan", report.planNanos() / 1e6);
                times.putNumber("check", report.checkNanos() / 1e6);
                times.putNumber("fused", outcome.launchNanos() / 1e6);
                putMillis(times, "computeAlone", alone.computeNanos());
                putMillis(times, "communicationAlone", alone.communicationNanos());
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

  private static void putMillis(JsonText.Fields times, String name, OptionalLong nanos) {
    if (nanos.isPresent()) {
      times.putNumber(name, nanos.getAsLong() / 1e6);
    } else {
      times.putNull(name);
    }
  }

  private void verdict(JsonText.Fields json) {
    if (outcome.verifier().isPresent()) {
      Verifier verifier = outcome.verifier().get();
      json.put("verified", verifier.wrong() == 0);
      json.put("wrong", verifier.wrong());
      json.putNumber("maxAbsError", verifier.maxError());
      json.put("elements", verifier.elements());
    } else {
      json.putNull("verified");
      json.putNull("wrong");
      json.putNull("maxAbsError");
      json.putNull("elements");
    }
  }

  private static void choice(
      JsonText.Fields both, String name, Optional<OperationReport.Choice> choice) {
    if (choice.isEmpty()) {
      both.putNull(name);
      return;
    }
    both.object(
        name,
        fields -> {
          fields.put("name", choice.get().name());
          fields.put("reason", choice.get().reason());
          fields.put("emulated", choice.get().emulated());
        });
  }

  void print(PrintWriter out) {
    OperationReport report = outcome.report();
    out.printf("%s: %s%n%n", operator.name(), operator.description());
    TextTable table = new TextTable("  ");
    table.row(
        "world",
        "%s of %s, on device %s"
            .formatted(count(nodes(), "node"), count(ranksPerNode(), "rank"), report.device()));
    table.row("shape", shape());
    report.intra().ifPresent(choice -> table.row("inside a node", words(choice)));
    report.inter().ifPresent(choice -> table.row("between nodes", words(choice)));
    table.row(
        "schedule",
        "%s, proven free of races and deadlocks; lanes %s"
            .formatted(count(report.tasks(), "task"), String.join(", ", report.lanes())));
    table.row("prepared", prepared(report));
    table.row("moved", moved(report));
    table.row("time", time());
    table.row("alone", alone());
    table.row("output", verdict());
    table.row("digest", outcome.digest());
    table.print(out);
  }

  private String shape() {
    StringBuilder text = new StringBuilder();
    for (String size : operator.sizes().keySet()) {
      text.append(size).append(' ').append(problem.size(size)).append(", ");
    }
    return text.append(problem.dtype().label()).toString();
  }

  private static String words(OperationReport.Choice choice) {
    boolean says = !choice.emulated() || choice.name().contains("emulated");
    return "%s%s: %s".formatted(choice.name(), says ? "" : " (emulated)", choice.reason());
  }

  private static String prepared(OperationReport report) {
    return "%s to plan, %s to prove"
        .formatted(millis(report.planNanos()), millis(report.checkNanos()));
  }

  private String moved(OperationReport report) {
    long least = operator.interNodeBytes(problem);
    return "%s inside nodes, %s between nodes%s"
        .formatted(
            bytes(report.intraBytes()),
            bytes(report.interBytes()),
            nodes() == 1
                ? ""
                : report.interBytes() == least
                    ? ", the least that is possible"
                    : "; %s would do".formatted(bytes(least)));
  }

  private String alone() {
    return "compute %s, communication %s"
        .formatted(millis(alone.computeNanos()), millis(alone.communicationNanos()));
  }

  private static String millis(OptionalLong nanos) {
    return nanos.isPresent() ? millis(nanos.getAsLong()) : "not measured";
  }

  private String time() {
    double flops = operator.flops(problem);
    double gigaflops = flops / outcome.launchNanos();
    return millis(outcome.launchNanos())
        + (iterations == 1
            ? ""
            : ", median of %d launches".formatted(Math.min(iterations, OperatorRun.TIMES_KEPT)))
        + (flops > 0 ? String.format(Locale.ROOT, ", %.1f GFLOP/s over all ranks", gigaflops) : "");
  }

  private String verdict() {
    if (outcome.verifier().isEmpty()) {
      return "not verified: --no-verify";
    }
    Verifier verifier = outcome.verifier().get();
    String all = count(verifier.elements(), "element");
    if (verifier.wrong() > 0) {
      return String.format(
          Locale.ROOT,
          "WRONG: %,d of %s, largest error %.3g",
          verifier.wrong(),
          all,
          verifier.maxError());
    }
    return verifier.isExact()
        ? "right: %s, each to the last bit".formatted(all)
        : String.format(
            Locale.ROOT,
            "right: %s, largest error %.3g, within rounding",
            all,
            verifier.maxError());
  }

  private static String millis(long nanos) {
    return String.format(Locale.ROOT, nanos < 100_000_000 ? "%.2f ms" : "%.0f ms", nanos / 1e6);
  }

  private static String count(long number, String noun) {
    return String.format(Locale.ROOT, "%,d %s%s", number, noun, number == 1 ? "" : "s");
  }

  /** Bytes as people read them; JSON has the exact number. */
  private static String bytes(long bytes) {
    if (bytes < 10_000) {
      return count(bytes, "byte");
    }
    String[] units = {"KiB", "MiB", "GiB", "TiB", "PiB"};
    double value = bytes / 1024.0;
    int unit = 0;
    while (value >= 1024 && unit < units.length - 1) {
      value /= 1024;
      unit++;
    }
    return String.format(Locale.ROOT, "%.2f %s", value, units[unit]);
  }
}
