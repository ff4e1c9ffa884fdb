package org.mkernel.testsuite;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.stream.Stream;

/** A process, started in a folder, with what it prints kept in files elsewhere. */
final class ImageCommand implements AutoCloseable {
  static final Path IMAGE = Path.of("../distribution/target/mkernel").toAbsolutePath().normalize();

  private final List<String> command;
  private final Path out;
  private final Path err;
  private final Process process;

  private ImageCommand(Path folder, List<String> command) {
    this.command = command;
    try {
      this.out = Files.createTempFile("mkernel-test-out", ".txt");
      this.err = Files.createTempFile("mkernel-test-err", ".txt");
      this.process =
          new ProcessBuilder(command)
              .directory(folder.toFile())
              .redirectOutput(out.toFile())
              .redirectError(err.toFile())
              .start();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /**
   * How a process ended.
   *
   * @param status exit status, 128 and the signal's number after a signal
   * @param out standard output
   * @param err standard error
   */
  record Result(int status, String out, String err) {}

  /** Skips the test when there is no image. */
  static void assumeBuilt() {
    assumeTrue(Files.isDirectory(IMAGE), "no image: it is built by ./build package or verify");
  }

  static String launcher() {
    return IMAGE.resolve("bin/mkernel").toString();
  }

  static ImageCommand start(Path folder, String... command) {
    return new ImageCommand(folder, List.of(command));
  }

  /**
   * Starts the command of the image. A test may run where SIGINT is ignored, as behind an ampersand
   * in a script, and would hand that down: a person's terminal does not.
   */
  static ImageCommand mkernel(Path folder, String... arguments) {
    List<String> command =
        new ArrayList<>(List.of("env", "--default-signal=INT,TERM,HUP", launcher()));
    command.addAll(List.of(arguments));
    return new ImageCommand(folder, command);
  }

  /** Waits until something holds, or fails when the process ends before. */
  void until(BooleanSupplier condition) throws InterruptedException {
    long end = System.nanoTime() + TimeUnit.MINUTES.toNanos(2);
    while (!condition.getAsBoolean()) {
      assertThat(process.isAlive()).as("%s runs: %s", command, read(err)).isTrue();
      assertThat(System.nanoTime()).as("nothing came of %s", command).isLessThan(end);
      Thread.sleep(20);
    }
  }

  /** Sends a signal, as {@code INT}. */
  void signal(String name) throws IOException, InterruptedException {
    Process kill =
        new ProcessBuilder("kill", "-s", name, Long.toString(process.pid())).inheritIO().start();
    assertThat(kill.waitFor()).isZero();
  }

  Result end() throws InterruptedException {
    assertThat(process.waitFor(2, TimeUnit.MINUTES)).as("%s ends", command).isTrue();
    return new Result(process.exitValue(), read(out), read(err));
  }

  private static String read(Path file) {
    try {
      return Files.readString(file, StandardCharsets.UTF_8);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** The names of all files of a folder, hidden ones included. */
  static List<String> files(Path folder) {
    try (Stream<Path> all = Files.list(folder)) {
      return all.map(path -> path.getFileName().toString()).sorted().toList();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Override
  public void close() throws IOException {
    process.destroyForcibly();
    Files.deleteIfExists(out);
    Files.deleteIfExists(err);
  }
}
