package org.mkernel.testsuite;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The image as it is shipped: what it holds, and that it starts wherever it lies. */
final class ImageTest {
  @TempDir Path folder;

  @BeforeEach
  void imageIsBuilt() {
    ImageCommand.assumeBuilt();
  }

  @Test
  void holdsAllModulesInOneVersion() throws Exception {
    List<String> ours =
        run(ImageCommand.IMAGE.resolve("bin/java").toString(), "--list-modules")
            .out()
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
  void holdsTheFilesThatLaunchIt() {
    assertThat(ImageCommand.files(ImageCommand.IMAGE.resolve("share/launch")))
        .containsExactly("Containerfile", "mkernel-job.yaml", "mkernel.sbatch");
  }

  @Test
  void startsThroughALinkFromAnyFolder() throws Exception {
    Path link =
        Files.createSymbolicLink(folder.resolve("command"), Path.of(ImageCommand.launcher()));
    Path linkToLink = Files.createSymbolicLink(folder.resolve("mkernel"), link.getFileName());
    assertThat(run(linkToLink.toString(), "--version"))
        .isEqualTo(run(ImageCommand.launcher(), "--version"));
    assertThat(run(linkToLink.toString(), "--version").status()).isZero();
  }

  @Test
  void startsFromACopyInAFolderWithAnOddName() throws Exception {
    Path copy = folder.resolve("it's a $HOME");
    assertThat(run("cp", "-a", ImageCommand.IMAGE.toString(), copy.toString()).status()).isZero();
    assertThat(run(copy.resolve("bin/mkernel").toString(), "--version").status()).isZero();
  }

  /** The natives are used where they lie: nothing is unpacked, so nobody needs a home. */
  @Test
  void computesWithoutAHome() throws Exception {
    Path writable = Files.createDirectory(folder.resolve("writable"));
    String options = "-Duser.home=%1$s -Djava.io.tmpdir=%1$s".formatted(writable);
    ImageCommand.Result result =
        run(
            "env",
            "MKERNEL_JAVA_OPTIONS=" + options,
            ImageCommand.launcher(),
            "run",
            "all-gather-gemm",
            "--json");
    assertThat(result.status()).isZero();
    // Not even a warning of the virtual machine.
    assertThat(result.err()).isEmpty();
    try (Stream<Path> left = Files.walk(writable)) {
      assertThat(left.filter(Files::isRegularFile)).isEmpty();
    }
  }

  private ImageCommand.Result run(String... command) throws IOException, InterruptedException {
    try (ImageCommand process = ImageCommand.start(folder, command)) {
      return process.end();
    }
  }
}
