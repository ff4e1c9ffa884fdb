package org.mkernel.cli;

import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.mkernel.api.Availability;
import org.mkernel.api.Config;
import org.mkernel.api.MKernel;
import org.mkernel.api.PluginInfo;
import org.mkernel.api.UsageException;
import org.mkernel.runtime.join.Launch;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code mkernel info}: what was found, and what can't be used and why. */
@Command(
    name = "info",
    description = "shows modules, providers and devices, with reasons for what can't be used",
    mixinStandardHelpOptions = true)
final class InfoCommand implements Runnable {
  private final Config config;
  private final MKernel mkernel;

  @Option(names = "--json", description = "one JSON document")
  boolean json;

  @Spec private CommandSpec spec = CommandSpec.create();

  InfoCommand(Config config, MKernel mkernel) {
    this.config = config;
    this.mkernel = mkernel;
  }

  @Override
  public void run() {
    List<PluginInfo> plugins =
        mkernel.plugins().stream()
            .sorted(Comparator.comparing(PluginInfo::kind).thenComparing(PluginInfo::name))
            .toList();
    PrintWriter out = spec.commandLine().getOut();
    if (json) {
      new JsonText()
          .object(document -> {
            document.put("schema", 1);
            document.put("java", Runtime.version().toString());
            document.put("processors", Runtime.getRuntime().availableProcessors());
            document.object("launcher", this::launcher);
            document.array(
                "plugins",
                plugins,
                (entry, plugin) -> {
                  entry.put("kind", plugin.kind());
                  entry.put("name", plugin.name());
                  entry.put("module", plugin.module());
                  entry.put("description", plugin.description());
                  entry.put("available", plugin.availability().isAvailable());
                  switch (plugin.availability()) {
                    case Availability.Available a -> entry.put("detail", a.detail());
                    case Availability.Unavailable u -> {
                      entry.put("reason", u.reason());
                      entry.put("remedy", u.remedy());
                    }
                  }
                });
          })
          .printTo(out);
      return;
    }
    out.printf(
        "Java %s, %d processors%n%n",
        Runtime.version(), Runtime.getRuntime().availableProcessors());
    TextTable table = new TextTable("");
    launcher(table);
    for (PluginInfo plugin : plugins) {
      String mark = plugin.availability().isAvailable() ? "ok" : "no";
      for (String line : words(plugin)) {
        boolean first = !mark.isEmpty();
        table.row(
            mark,
            first ? plugin.kind() : "",
            first ? plugin.name() : "",
            first ? plugin.module() : "",
            line);
        mark = "";
      }
    }
    table.print(out);
  }

  /** What is said of a plug-in, at least one line. */
  private static List<String> words(PluginInfo plugin) {
    List<String> lines = new ArrayList<>();
    switch (plugin.availability()) {
      case Availability.Available a ->
          lines.add(
              Stream.of(plugin.description(), a.detail())
                  .filter(text -> !text.isEmpty())
                  .collect(Collectors.joining("; ")));
      case Availability.Unavailable u -> {
        if (!plugin.description().isEmpty()) {
          lines.add(plugin.description());
        }
        lines.add("reason: " + u.reason());
        lines.add("remedy: " + u.remedy());
      }
    }
    return lines;
  }

  private void launcher(TextTable table) {
    try {
      Launch launch = Launch.of(config);
      table.row("ok", "launcher", launch.launcher(), "", launch.describe());
    } catch (UsageException e) {
      table.row("no", "launcher", "", "", "reason: " + e.getMessage());
      e.failure().remedy().ifPresent(remedy -> table.row("", "", "", "", "remedy: " + remedy));
    }
  }

  private void launcher(JsonText.Fields fields) {
    try {
      Launch launch = Launch.of(config);
      fields.put("name", launch.launcher());
      fields.put("rank", launch.rank());
      fields.put("world", launch.size());
      fields.array(
          "origins",
          launch.origins(),
          (entry, origin) -> {
            entry.put("what", origin.what());
            entry.put("value", origin.value());
            entry.put("source", origin.source());
          });
    } catch (UsageException e) {
      fields.putNull("name");
      fields.put("reason", String.valueOf(e.getMessage()));
      fields.put("remedy", e.failure().remedy().orElse(""));
    }
  }
}
