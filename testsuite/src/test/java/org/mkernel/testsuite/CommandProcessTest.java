package org.mkernel.testsuite;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.mkernel.testsuite.ImageCommand.Result;

/** The command as a process among others: signals, full disks, ranks that are lost. */
@Tag("slow")
final class CommandProcessTest {
  /** More launches than anybody waits for. */
  private static final String[] LONG = {
    "run", "all-gather-gemm", "--m=64", "--n=64", "--k=64", "--iterations=500000", "--no-verify"
  };

  private static final String[] SHORT = {"run", "all-gather-gemm", "--m=64", "--n=64", "--k=64"};

  /** Its output has 1 MiB. */
  private static final String[] WIDE = {"run", "all-gather-gemm", "--m=64", "--n=1024", "--k=64"};

  private static final String OLD = "what an earlier run left";

  @TempDir Path folder;

  @BeforeEach
  void imageIsBuilt() {
    ImageCommand.assumeBuilt();
  }

  private static String[] with(String[] command, String... more) {
    List<String> all = new ArrayList<>(List.of(command));
    all.addAll(List.of(more));
    return all.toArray(String[]::new);
  }

  private Result run(String... arguments) throws IOException, InterruptedException {
    try (ImageCommand command = ImageCommand.mkernel(folder, arguments)) {
      return command.end();
    }
  }

  private boolean hasTemporaryFile() {
    return ImageCommand.files(folder).stream().anyMatch(name -> name.endsWith(".part"));
  }

  private static Path old(Path file) throws IOException {
    return Files.writeString(file, OLD);
  }

  @Test
  void twoRunsAtOnceGiveTheSameAndShareAnOutput() throws Exception {
    String[] arguments = with(SHORT, "--json", "--output=c.npy", "--iterations=200");
    try (ImageCommand one = ImageCommand.mkernel(folder, arguments);
        ImageCommand two = ImageCommand.mkernel(folder, arguments)) {
      Result first = one.end();
      Result second = two.end();
      assertThat(first.status()).as(first.err()).isZero();
      assertThat(second.status()).as(second.err()).isZero();
      assertThat(digest(first)).isEqualTo(digest(second));
    }
    assertThat(ImageCommand.files(folder)).containsExactly("c.npy");
    Result reads = run("run", "all-gather", "--m=64", "--k=256", "--input=a=c.npy");
    assertThat(reads.status()).as(reads.err()).isZero();
  }

  private static String digest(Result result) {
    var digest = Pattern.compile("\"digest\":\"([0-9a-f]{64})\"").matcher(result.out());
    assertThat(digest.find()).as(result.out()).isTrue();
    return digest.group(1);
  }

  @ParameterizedTest
  @CsvSource({"INT, 130", "TERM, 143", "HUP, 129"})
  void aSignalEndsARunInOrder(String signal, int status) throws Exception {
    Path output = old(folder.resolve("c.npy"));
    try (ImageCommand command =
        ImageCommand.mkernel(folder, with(LONG, "--output=c.npy", "--trace=trace.json"))) {
      command.until(this::hasTemporaryFile);
      // Most runs are in the middle of launches by then, some still prepare: both end in order.
      Thread.sleep(500);
      command.signal(signal);
      Result result = command.end();
      assertThat(result.status()).isEqualTo(status);
      assertThat(result.err())
          .isEqualTo("mkernel: interrupted: all-gather-gemm was stopped, and c.npy not written\n");
      assertThat(result.out()).isEmpty();
    }
    assertThat(output).hasContent(OLD);
    assertThat(ImageCommand.files(folder)).isSubsetOf("c.npy", "trace.json");
  }

  /** What cannot be caught leaves no half of an output; the next run is not disturbed. */
  @Test
  void aKilledRunLeavesTheOutputAsItWas() throws Exception {
    Path output = old(folder.resolve("c.npy"));
    try (ImageCommand command = ImageCommand.mkernel(folder, with(LONG, "--output=c.npy"))) {
      command.until(this::hasTemporaryFile);
      command.signal("KILL");
      assertThat(command.end().status()).isEqualTo(128 + 9);
    }
    assertThat(output).hasContent(OLD);
    assertThat(run(with(SHORT, "--output=c.npy")).status()).isZero();
  }

  @ParameterizedTest
  @CsvSource({
    "lost-link:0-2@3, look at rank 0",
    "error:0-2@3, failed",
    "overrun:1@3, failed",
  })
  void aLostRankEndsTheRunWithItsName(String fault, String words) throws Exception {
    Path output = old(folder.resolve("c.npy"));
    Result result =
        run(with(SHORT, "--output=c.npy", "--deadline=1", "-o=emulated.fault=" + fault));
    assertThat(result.status()).as(result.err()).isEqualTo(3);
    assertThat(result.err())
        .startsWith("mkernel: all-gather-gemm")
        .containsPattern("rank [01]")
        .contains(words)
        .doesNotContain("Exception");
    assertThat(result.out()).isEmpty();
    assertThat(output).hasContent(OLD);
    assertThat(ImageCommand.files(folder)).containsExactly("c.npy");
  }

  @Test
  void aStalledProcessIsNoFailureWhenItGoesOn() throws Exception {
    try (ImageCommand command =
        ImageCommand.mkernel(
            folder, with(SHORT, "--output=c.npy", "--iterations=20000", "--no-verify"))) {
      command.until(this::hasTemporaryFile);
      command.signal("STOP");
      Thread.sleep(1000);
      command.signal("CONT");
      Result result = command.end();
      assertThat(result.status()).as(result.err()).isZero();
    }
    assertThat(ImageCommand.files(folder)).containsExactly("c.npy");
  }

  @Test
  void aFullDiskKeepsTheFileThatIsThere() throws Exception {
    Path disk = Files.createDirectory(folder.resolve("disk"));
    mount(disk, "size=64k");
    try {
      old(disk.resolve("c.npy"));
      assertCannotWrite(disk, "No space left on device", 3);
    } finally {
      unmount(disk);
    }
  }

  /** The same without being root: a file may not become as large as the output. */
  @Test
  void aFileThatMayNotGrowKeepsTheFileThatIsThere() throws Exception {
    Path output = old(folder.resolve("c.npy"));
    // The limit counts units of 512 or of 1024 bytes.
    String script = "ulimit -f 256; exec \"$0\" \"$@\"";
    try (ImageCommand command =
        ImageCommand.start(
            folder,
            with(
                new String[] {"sh", "-c", script, ImageCommand.launcher()},
                with(WIDE, "--output=c.npy")))) {
      Result result = command.end();
      assertThat(result.status()).as(result.err()).isEqualTo(3);
      assertThat(result.err()).contains("c.npy: cannot be written: File too large", "remedy: ");
    }
    assertThat(output).hasContent(OLD);
    assertThat(ImageCommand.files(folder)).containsExactly("c.npy");
  }

  @Test
  void aReadOnlyFolderIsSaidBeforeTheRun() throws Exception {
    Path disk = Files.createDirectory(folder.resolve("disk"));
    mount(disk, "size=64k");
    try {
      old(disk.resolve("c.npy"));
      start("mount", "-o", "remount,ro", disk.toString());
      assertCannotWrite(disk, "Read-only file system", 3);
    } finally {
      unmount(disk);
    }
  }

  private void assertCannotWrite(Path disk, String reason, int status)
      throws IOException, InterruptedException {
    Result result = run(with(WIDE, "--output=disk/c.npy"));
    assertThat(result.status()).as(result.err()).isEqualTo(status);
    assertThat(result.err()).contains("disk/c.npy: cannot be written: " + reason, "remedy: ");
    assertThat(result.out()).isEmpty();
    assertThat(disk.resolve("c.npy")).hasContent(OLD);
    assertThat(ImageCommand.files(disk)).containsExactly("c.npy");
  }

  @ParameterizedTest
  @CsvSource({
    "missing/c.npy, its folder does not exist",
    "c.txt, unknown kind of file",
    "folder.npy, not a regular file",
    "full.npy, not a regular file",
  })
  void whatCannotBeAnOutputIsBadUsage(String output, String words) throws Exception {
    Files.createDirectory(folder.resolve("folder.npy"));
    Files.createSymbolicLink(folder.resolve("full.npy"), Path.of("/dev/full"));
    Result result = run(with(LONG, "--output=" + output));
    assertThat(result.status()).isEqualTo(2);
    assertThat(result.err()).startsWith("mkernel: " + output).contains(words).hasLineCount(1);
    assertThat(ImageCommand.files(folder)).containsExactly("folder.npy", "full.npy");
    Files.delete(folder.resolve("full.npy"));
  }

  @Test
  void aFullStandardOutputIsNoSuccess() throws Exception {
    try (ImageCommand command =
        ImageCommand.start(
            folder, "sh", "-c", "exec \"$0\" info >/dev/full", ImageCommand.launcher())) {
      Result result = command.end();
      assertThat(result.status()).isEqualTo(3);
      assertThat(result.err()).contains("standard output cannot be written").hasLineCount(1);
    }
  }

  private int start(String... command) throws IOException, InterruptedException {
    try (ImageCommand process = ImageCommand.start(folder, command)) {
      return process.end().status();
    }
  }

  private void mount(Path disk, String options) throws IOException, InterruptedException {
    assumeTrue(
        start("mount", "-t", "tmpfs", "-o", options, "mkernel-test", disk.toString()) == 0,
        "no file system can be mounted here: it takes root");
  }

  private void unmount(Path disk) throws IOException, InterruptedException {
    assertThat(start("umount", disk.toString())).isZero();
  }
}
