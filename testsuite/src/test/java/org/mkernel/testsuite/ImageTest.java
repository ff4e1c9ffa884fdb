package org.mkernel.testsuite;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The image as it is shipped: what it holds, and that it starts wherever it lies. */
@Tag("slow")
final class ImageTest {
  private static final Path IMAGE =
      Path.of("../distribution/target/mkernel").toAbsolutePath().normalize();

  @TempDir Path folder;

  @BeforeEach
  void imageIsBuilt() {
    assumeTrue(Files.isDirectory(IMAGE), "no image: it is built by ./build package or verify");
  }

  @Test
  void holdsAllModulesInOneVersion() throws Exception {
    List<String> ours =
        run(IMAGE.resolve("bin/java").toString(), "--list-modules")
            .output()
            .lines()
            .filter(line -> line.startsWith("org.mkernel."))
            .toList();
    String version = OurModule.class.getModule().getDescriptor().rawVersion().orElseThrow();
    assertThat(ours)
        .containsExactlyInAnyOrderElementsOf(
            OurModule.published()
                .map(OurModule::name)
                .filter(name -> !name.equals("org.mkernel.testkit"))
                .map(name -> name + "@" + version)
                .toList());
  }

  @Test
  void startsThroughALinkFromAnyFolder() throws Exception {
    Path link = Files.createSymbolicLink(folder.resolve("command"), Path.of(launcher()));
    Path linkToLink = Files.createSymbolicLink(folder.resolve("mkernel"), link.getFileName());
    assertThat(run(linkToLink.toString(), "--version")).isEqualTo(run(launcher(), "--version"));
    assertThat(run(linkToLink.toString(), "--version").status()).isZero();
  }

  @Test
  void startsFromACopyInAFolderWithAnOddName() throws Exception {
    Path copy = folder.resolve("it's a $HOME");
    assertThat(run("cp", "-a", IMAGE.toString(), copy.toString()).status()).isZero();
    assertThat(run(copy.resolve("bin/mkernel").toString(), "--version").status()).isZero();
  }

  /** The natives are used where they lie: nothing is unpacked, so nobody needs a home. */
  @Test
  void computesWithoutAHome() throws Exception {
    Path writable = Files.createDirectory(folder.resolve("writable"));
    String options = "-Duser.home=%1$s -Djava.io.tmpdir=%1$s".formatted(writable);
    Result result =
        run(
            "env",
            "MKERNEL_JAVA_OPTIONS=" + options,
            launcher(),
            "run",
            "all-gather-gemm",
            "--json");
    assertThat(result.status()).as(result.output()).isZero();
    try (Stream<Path> left = Files.walk(writable)) {
      assertThat(left.filter(Files::isRegularFile)).isEmpty();
    }
  }

  private static String launcher() {
    return IMAGE.resolve("bin/mkernel").toString();
  }

  /** What a process printed, on both of its outputs, and how it ended. */
  private record Result(int status, String output) {}

  private Result run(String... command) throws IOException, InterruptedException {
    Path output = Files.createTempFile(folder, "output", ".txt");
    Process process =
        new ProcessBuilder(command)
            .directory(folder.toFile())
            .redirectErrorStream(true)
            .redirectOutput(output.toFile())
            .start();
    if (!process.waitFor(2, TimeUnit.MINUTES)) {
      process.destroyForcibly();
      throw new AssertionError("still running after 2 minutes: " + String.join(" ", command));
    }
    return new Result(process.exitValue(), Files.readString(output, StandardCharsets.UTF_8));
  }
}
