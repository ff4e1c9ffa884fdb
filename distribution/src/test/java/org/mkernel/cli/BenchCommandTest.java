package org.mkernel.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.mkernel.api.Config;

final class BenchCommandTest {
  private final ByteArrayOutputStream out = new ByteArrayOutputStream();
  private final ByteArrayOutputStream err = new ByteArrayOutputStream();

  @TempDir Path folder;

  private int bench(String... options) {
    List<String> all = new ArrayList<>(List.of("bench", "gemm"));
    all.addAll(List.of("--device=host", "--dtype=f32", "--idle=0", "--burst=0"));
    all.addAll(List.of(options));
    if (all.stream().noneMatch(option -> option.startsWith("--against"))) {
      all.add("--against=host");
    }
    return new Cli(
            Config.defaults(),
            new PrintStream(out, true, StandardCharsets.UTF_8),
            new PrintStream(err, true, StandardCharsets.UTF_8))
        .execute(all.toArray(String[]::new));
  }

  @Test
  void comparesTwoDevicesOnSeveralShapes() throws IOException {
    Path csv = folder.resolve("samples.csv");
    int status = bench("--shape=40x30x20,7x5x3", "--pairs=6", "--rotate=0", "--csv=" + csv);
    assertThat(status).as(err.toString(StandardCharsets.UTF_8)).isEqualTo(ExitCode.DONE);
    assertThat(out.toString(StandardCharsets.UTF_8).lines())
        .hasSize(4)
        .anyMatch(line -> line.matches(" *40 +30 +20 .*"))
        .anyMatch(line -> line.matches(" *7 +5 +3 .*"));
    assertThat(Files.readAllLines(csv)).hasSize(1 + 2 * 2 * 6);
  }

  @Test
  void rotatesThroughAsMuchMemoryAsAskedFor() {
    // One set of 64 x 64 operands has 48 KiB: 22 sets have a MiB, and a few more make them rotate.
    assertThat(bench("--shape=64x64x64", "--pairs=6", "--rotate=1", "--json"))
        .isEqualTo(ExitCode.DONE);
    assertThat(out.toString(StandardCharsets.UTF_8))
        .containsPattern("\"sets\":2[3-5],")
        .contains("\"different\":0", "\"compared\":192");
  }

  @Test
  void refusesWhatMakesNoSense() {
    assertThat(bench("--pairs=5")).isEqualTo(ExitCode.USAGE);
    assertThat(bench("--shape=8x8")).isEqualTo(ExitCode.USAGE);
    assertThat(bench("--shape=0x8x8")).isEqualTo(ExitCode.USAGE);
    assertThat(bench("--shape=8x8x8", "--against=none")).isEqualTo(ExitCode.ENVIRONMENT);
    assertThat(err.toString(StandardCharsets.UTF_8))
        .contains("--pairs is 5", "three numbers are needed", "no device is named \"none\"");
    assertThat(out.size()).isZero();
  }
}
