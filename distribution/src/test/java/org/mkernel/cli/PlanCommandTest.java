package org.mkernel.cli;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

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
}
