package org.mkernel.cli;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import org.mkernel.api.Config;

/**
 * The command, run in this process, and what it printed.
 *
 * @param code its exit code
 * @param out its standard output
 * @param err its standard error
 */
record CommandRun(int code, String out, String err) {
  static CommandRun of(String... args) {
    return of(Config.defaults(), args);
  }

  static CommandRun of(Config config, String... args) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    ByteArrayOutputStream err = new ByteArrayOutputStream();
    int code = new Cli(config, stream(out), stream(err)).execute(args);
    return new CommandRun(
        code, out.toString(StandardCharsets.UTF_8), err.toString(StandardCharsets.UTF_8));
  }

  private static PrintStream stream(ByteArrayOutputStream bytes) {
    return new PrintStream(bytes, true, StandardCharsets.UTF_8);
  }

  /** A line of words as arguments. */
  static CommandRun line(String line) {
    return of(line.isEmpty() ? new String[0] : line.split(" "));
  }

  List<String> lines() {
    return out.lines().toList();
  }

  /** Standard output as one JSON object. */
  Map<String, Object> json() {
    return Json.object(out);
  }
}
