package org.mkernel.cli;

import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import org.mkernel.api.Config;
import org.mkernel.api.MKernel;
import org.mkernel.api.PluginInfo;
import org.mkernel.cli.doctor.Doctor;
import org.mkernel.cli.doctor.Finding;
import org.mkernel.cli.doctor.Severity;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code mkernel doctor}: what on this machine makes operations fail, hang or crawl. */
@Command(
    name = "doctor",
    description = {
      "examines this machine for what makes operations fail, hang or crawl",
      "It changes nothing. Exit code 1 when it found an error."
    },
    mixinStandardHelpOptions = true)
final class DoctorCommand implements Callable<Integer> {
  private final Config config;

  @Option(names = "--json", description = "one JSON document")
  boolean json;

  @Option(names = "--root", hidden = true, description = "folder that holds proc, sys and dev")
  Path root = Path.of("/");

  @Spec private CommandSpec spec = CommandSpec.create();

  DoctorCommand(Config config) {
    this.config = config;
  }

  @Override
  public Integer call() {
    List<Finding> findings = Doctor.of(root, config, this::providers).examine();
    PrintWriter out = spec.commandLine().getOut();
    if (json) {
      document(findings).printTo(out);
    } else {
      print(findings, out);
    }
    return count(findings, Severity.ERROR) > 0 ? ExitCode.WRONG : ExitCode.DONE;
  }

  private List<PluginInfo> providers() {
    try (MKernel mkernel = MKernel.open(config)) {
      return mkernel.plugins();
    }
  }

  private static long count(List<Finding> findings, Severity severity) {
    return findings.stream().filter(finding -> finding.severity() == severity).count();
  }

  private static JsonText document(List<Finding> findings) {
    return new JsonText()
        .object(document -> {
          document.put("schema", 1);
          document.put("errors", count(findings, Severity.ERROR));
          document.put("warnings", count(findings, Severity.WARNING));
          document.array(
              "findings",
              findings,
              (entry, finding) -> {
                entry.put("probe", finding.probe());
                entry.put("severity", finding.severity().label());
                entry.put("summary", finding.summary());
                entry.array(
                    "evidence",
                    finding.evidence(),
                    (line, evidence) -> {
                      line.put("source", evidence.source());
                      line.put("value", evidence.value());
                    });
                entry.put("cause", finding.cause());
                entry.put("remedy", finding.remedy());
              });
        });
  }

  private static void print(List<Finding> findings, PrintWriter out) {
    List<String> counts = new ArrayList<>();
    for (Severity severity : Severity.values()) {
      long count = count(findings, severity);
      if (count > 0) {
        String label = severity.label().replace('-', ' ');
        boolean plural = count > 1 && severity.compareTo(Severity.OK) < 0;
        counts.add("%d %s%s".formatted(count, label, plural ? "s" : ""));
      }
    }
    out.println(String.join(", ", counts));
    out.println();
    TextTable table = new TextTable("");
    for (Finding finding : findings) {
      table.row(mark(finding.severity()), finding.probe(), finding.summary());
      if (finding.severity().compareTo(Severity.OK) < 0) {
        table.row("", "", "cause:  " + finding.cause());
        finding.evidence().forEach(line -> table.row("", "", "found:  " + line));
        table.row("", "", "remedy: " + finding.remedy());
      }
    }
    table.print(out);
  }

  private static String mark(Severity severity) {
    return switch (severity) {
      case ERROR -> severity.label().toUpperCase(Locale.ROOT);
      case WARNING, OK -> severity.label();
      case NOT_APPLICABLE -> "-";
    };
  }
}
