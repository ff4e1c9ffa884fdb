package org.mkernel.cli.doctor;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

/** Runs programs that only show something. */
@FunctionalInterface
interface Programs {
  /**
   * Runs a program.
   *
   * @param command its name and arguments
   * @return the start of what it printed; nothing when it is not there, fails or takes too long
   */
  Optional<String> output(List<String> command);

  /** The programs of this machine, each for ten seconds at most. */
  static Programs real() {
    return command -> {
      try {
        Process process =
            new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.DISCARD).start();
        process.getOutputStream().close();
        // A program that hangs, as on a GPU that fell off its bus, must not hold up the doctor.
        var end = process.onExit().orTimeout(10, TimeUnit.SECONDS);
        var _ = end.exceptionally(e -> process.destroyForcibly());
        try (InputStream out = process.getInputStream()) {
          String text = new String(out.readNBytes(Machine.MOST_BYTES), StandardCharsets.UTF_8);
          if (process.waitFor(1, TimeUnit.SECONDS) && process.exitValue() == 0) {
            return Optional.of(text);
          }
        } finally {
          process.destroyForcibly();
        }
      } catch (IOException e) {
        return Optional.empty(); // It is not installed, or ended by the time limit.
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
      return Optional.empty();
    };
  }
}
