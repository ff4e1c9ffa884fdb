package org.mkernel.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** {@code mkernel plan}. */
final class PlanCommandTest {
  @Test
  void showsBuffersSignalsKernelsAndPools() {
    CommandRun run = CommandRun.line("plan all-gather-gemm --m 64 --n 8 --k 8 --nodes 3");
    assertThat(run.code()).isZero();
    assertThat(run.lines())
        .first()
        .asString()
        .matches("all-gather-gemm on 3 nodes, 6 ranks: \\d+ tasks, planned in .*");
    assertThat(run.lines())
        .anyMatch(line -> line.matches("digest [0-9a-f]{64}"))
        .anyMatch(line -> line.matches("buffer +c +OUTPUT +f32, depth 1, .* bytes on rank 0"))
        .anyMatch(line -> line.startsWith("signal  arrived"))
        .anyMatch(line -> line.startsWith("kernel  mkernel.gemm"))
        .anyMatch(line -> line.matches("rank 5 +compute +\\d+ gemm"))
        .noneMatch(line -> line.contains("proven"));
  }

  @Test
  void checkProvesAndSaysWhatIsAssumed() {
    CommandRun run = CommandRun.line("plan all-gather-gemm --m 64 --n 8 --k 8 --check");
    assertThat(run.code()).isZero();
    assertThat(run.lines())
        .anyMatch(line -> line.startsWith("proven in "))
        .anyMatch(line -> line.startsWith("assumed: "))
        .contains("bytes each launch: 4096 inside nodes, 2048 between nodes");
  }

  @Test
  void theSamePlanHasTheSameDigest() {
    String line = "plan all-gather --m 64 --k 8";
    assertThat(CommandRun.line(line).lines().get(1))
        .isEqualTo(CommandRun.line(line).lines().get(1));
  }

  @Test
  void simulatesAndShowsWhatTheTimeIsMadeOf() {
    CommandRun run =
        CommandRun.line(
            "plan all-gather-gemm --m 4096 --n 1024 --k 1024 --dtype bf16 --simulate"
                + " --bandwidth 5e10 --lanes compute=16");
    assertThat(run.code()).isZero();
    assertThat(run.lines())
        .contains("on machine h200:")
        .anyMatch(line -> line.matches("first launch .*s, then .*s each; bound .*s, by .*"))
        .anyMatch(line -> line.matches("role +compute +64 lanes work .*"))
        .anyMatch(line -> line.matches("busy +wire, sending .*%"))
        .anyMatch(line -> line.matches("path .* rank \\d+ gemm, \\d+ tasks?, after .*"));
  }

  @Test
  void aNarrowerWireIsPredictedToTakeLonger() {
    String line =
        "plan all-gather --m 4096 --k 1024 --nodes 4 --dtype bf16 --simulate --json --bandwidth ";
    double wide = (double) CommandRun.line(line + "1e11").json().get("firstMicros");
    double narrow = (double) CommandRun.line(line + "1e9").json().get("firstMicros");
    // Each rank sends its 512 rows to three nodes.
    assertThat(narrow).isGreaterThan(3 * 512 * 1024 * 2 / 1e9 * 1e6).isGreaterThan(5 * wide);
  }

  @Test
  void tracesTheSimulatedTimeline(@TempDir Path folder) throws IOException {
    Path file = folder.resolve("trace.json");
    CommandRun run =
        CommandRun.of(
            "plan",
            "all-gather",
            "--m",
            "64",
            "--k",
            "8",
            "--dtype",
            "bf16",
            "--simulate",
            "--trace",
            file.toString());
    assertThat(run.code()).isZero();
    assertThat((List<?>) Json.object(Files.readString(file)).get("traceEvents"))
        .hasSizeGreaterThan(20);
  }

  @Test
  void refusesToSimulateWhatItHasNoModelOf() {
    String line = "plan all-gather-gemm --m 64 --n 8 --k 8 --simulate ";
    assertThat(CommandRun.line(line + "--dtype f32").err()).contains("no rate for mkernel.gemm");
    assertThat(CommandRun.line(line + "--machine abacus").err()).contains("h200 and host");
    assertThat(CommandRun.line("plan all-gather --m 4 --k 4 --json").err()).contains("--simulate");
  }
}
