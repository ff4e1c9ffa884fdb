package org.mkernel.testsuite;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * The image on machines whose CUDA driver is missing, unfit or without a fit GPU: it says so, and
 * goes on. The drivers are doubles.
 */
@Tag("slow")
final class DriverDoublesTest {
  private static final Path IMAGE =
      Path.of("../distribution/target/mkernel").toAbsolutePath().normalize();

  private static final Pattern DEVICE =
      Pattern.compile("\\{\"kind\":\"device\",\"name\":\"cuda\"[^}]*\\}");

  private static final String UNAVAILABLE = "\"available\":false";

  private static final String DOUBLE =
      """
      int cuInit(unsigned flags) { return INIT; }
      int cuDriverGetVersion(int *version) { *version = VERSION; return 0; }
      int cuDeviceGetCount(int *count) { *count = GPUS; return 0; }
      int cuDeviceGetAttribute(int *value, int attribute, int gpu) {
        *value = attribute == 75 ? 8 : 0;
        return 0;
      }
      int cuDeviceGetName(char *name, int length, int gpu) {
        const char *is = "NVIDIA A100";
        for (int i = 0; i < length && (name[i] = is[i]) != 0; i++) {}
        return 0;
      }
      int cuGetErrorName(int error, const char **name) { *name = "CUDA_ERROR_OF_A_TEST"; return 0; }
      """;

  @TempDir Path folder;

  @BeforeEach
  void imageIsBuilt() {
    assumeTrue(Files.isDirectory(IMAGE), "no image: it is built by ./build package or verify");
  }

  private void makeDriver(String source, String... options) throws Exception {
    Path text = Files.writeString(folder.resolve("double.c"), source);
    List<String> command =
        new ArrayList<>(List.of("gcc", "-shared", "-fPIC", "-nostdlib", text.toString()));
    command.addAll(List.of("-Wl,-soname,libcuda.so.1", "-o", library().toString()));
    command.addAll(List.of(options));
    assertThat(run(command.toArray(String[]::new))).isEmpty();
  }

  private Path library() {
    return folder.resolve("libcuda.so.1");
  }

  /** What the command says of the device {@code cuda}, in JSON. */
  private String infoOfDevice() throws Exception {
    String info =
        run(
            "env",
            "LD_LIBRARY_PATH=" + folder,
            IMAGE.resolve("bin/mkernel").toString(),
            "info",
            "--json");
    Matcher device = DEVICE.matcher(info);
    assertThat(device.find()).as(info).isTrue();
    return device.group();
  }

  @Test
  void aLibraryThatIsNoneIsNoDriver() throws Exception {
    Files.writeString(library(), "none");
    assertThat(infoOfDevice())
        .contains(UNAVAILABLE)
        .contains("there is no NVIDIA driver", "\"remedy\":\"install NVIDIA driver");
  }

  @Test
  void aStubIsNoDriver() throws Exception {
    makeDriver("");
    assertThat(infoOfDevice())
        .contains(UNAVAILABLE)
        .contains("a stub without functions", "\"remedy\":\"");
  }

  @Test
  void aDriverThatDoesNotStartGivesItsCode() throws Exception {
    makeDriver(DOUBLE, "-DINIT=803", "-DVERSION=13000", "-DGPUS=1");
    assertThat(infoOfDevice())
        .contains(UNAVAILABLE)
        .contains("cuInit failed: CUDA_ERROR_OF_A_TEST (803)", "\"remedy\":\"");
  }

  @Test
  void anOldDriverIsRefusedWithBothVersions() throws Exception {
    makeDriver(DOUBLE, "-DINIT=0", "-DVERSION=12040", "-DGPUS=1");
    assertThat(infoOfDevice())
        .contains(UNAVAILABLE)
        .contains("the driver supports CUDA up to 12.4; 13.0 is needed", "\"remedy\":\"");
  }

  @Test
  void aDriverWithoutGpusIsSaidToHaveNone() throws Exception {
    makeDriver(DOUBLE, "-DINIT=0", "-DVERSION=13000", "-DGPUS=0");
    assertThat(infoOfDevice())
        .contains(UNAVAILABLE)
        .contains("the driver shows no GPU", "\"remedy\":\"");
  }

  @Test
  void gpusOfAnotherArchitectureAreNamed() throws Exception {
    makeDriver(DOUBLE, "-DINIT=0", "-DVERSION=13000", "-DGPUS=2");
    assertThat(infoOfDevice())
        .contains(UNAVAILABLE)
        .contains("no GPU has compute capability 9.0", "NVIDIA A100 (8.0), NVIDIA A100 (8.0)");
  }

  private String run(String... command) throws IOException, InterruptedException {
    Path output = Files.createTempFile(folder, "output", ".txt");
    Process process =
        new ProcessBuilder(command)
            .redirectErrorStream(true)
            .redirectOutput(output.toFile())
            .start();
    if (!process.waitFor(2, TimeUnit.MINUTES)) {
      process.destroyForcibly();
      throw new AssertionError("still running after 2 minutes: " + String.join(" ", command));
    }
    String text = Files.readString(output, StandardCharsets.UTF_8);
    assertThat(process.exitValue()).as(text).isZero();
    return text;
  }
}
