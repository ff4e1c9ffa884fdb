package org.mkernel.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.InstanceOfAssertFactories.LIST;
import static org.assertj.core.api.InstanceOfAssertFactories.MAP;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.mkernel.api.Config;

/** {@code mkernel doctor}. */
final class DoctorCommandTest {
  @TempDir Path root;

  @Test
  void documentHasEveryFieldWithItsType() {
    CommandRun run = CommandRun.of("doctor", "--json");
    Map<String, Object> json = run.json();
    assertThat(json)
        .containsOnlyKeys("schema", "errors", "warnings", "findings")
        .containsEntry("schema", 1L);
    assertThat(run.code())
        .isEqualTo(json.get("errors").equals(0L) ? ExitCode.DONE : ExitCode.WRONG);
    assertThat(json)
        .extractingByKey("findings", LIST)
        .hasSizeGreaterThan(20)
        .allSatisfy(finding ->
            assertThat(finding)
                .asInstanceOf(MAP)
                .containsOnlyKeys("probe", "severity", "summary", "evidence", "cause", "remedy")
                .extractingByKey("evidence", LIST)
                .allSatisfy(line ->
                    assertThat(line).asInstanceOf(MAP).containsOnlyKeys("source", "value")));
  }

  @Test
  void errorsComeFirstWithTheirRemedyAndExitCodeOne() throws Exception {
    Files.createDirectories(root.resolve("sys/class/infiniband/mlx5_0/ports/1"));
    Files.writeString(root.resolve("sys/class/infiniband/mlx5_0/ports/1/state"), "1: DOWN\n");
    CommandRun run = CommandRun.of("doctor", "--root", root.toString());
    assertThat(run.code()).isEqualTo(ExitCode.WRONG);
    assertThat(run.lines().getFirst()).startsWith("2 errors, ");
    assertThat(run.lines().get(2)).startsWith("ERROR");
    assertThat(run.out())
        .containsPattern("ERROR +rdma-adapters +mlx5_0 has no active port")
        .contains("found:  /sys/class/infiniband/mlx5_0/ports/1/state: 1: DOWN")
        .contains("remedy: look at the cable");
  }

  /** What keeps every other command from starting is a finding of this one. */
  @Test
  void aSettingThatStopsOtherCommandsIsAFinding() {
    Config config = Config.defaults().option("rank", "7").option("world-size", "2");
    CommandRun run = CommandRun.of(config, "doctor");
    assertThat(run.code()).isEqualTo(ExitCode.WRONG);
    assertThat(run.err()).isEmpty();
    assertThat(run.out()).containsPattern("ERROR +launcher +MKERNEL_RANK is \"7\"");
  }

  @Test
  void badUsageIsSaid() {
    CommandRun run = CommandRun.of("doctor", "--bogus");
    assertThat(run.code()).isEqualTo(ExitCode.USAGE);
    assertThat(run.err()).startsWith("mkernel: ").contains("--bogus").hasLineCount(1);
    assertThat(CommandRun.of("--help").out()).contains("doctor");
  }
}
