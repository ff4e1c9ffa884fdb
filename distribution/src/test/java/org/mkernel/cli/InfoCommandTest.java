package org.mkernel.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.InstanceOfAssertFactories.LIST;
import static org.assertj.core.api.InstanceOfAssertFactories.MAP;

import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.mkernel.api.Config;

/** {@code mkernel info}. */
final class InfoCommandTest {
  @Test
  void documentHasEveryFieldWithItsType() {
    Map<String, Object> json = CommandRun.of("info", "--json").json();
    assertThat(json)
        .containsOnlyKeys("schema", "java", "processors", "launcher", "plugins")
        .containsEntry("schema", 1L)
        .containsEntry("java", Runtime.version().toString())
        .containsEntry("processors", (long) Runtime.getRuntime().availableProcessors());
    assertThat(json)
        .extractingByKey("launcher", MAP)
        .containsOnlyKeys("name", "rank", "world", "origins")
        .extractingByKey("origins", LIST)
        .allSatisfy(origin ->
            assertThat(origin).asInstanceOf(MAP).containsOnlyKeys("what", "value", "source"));
    assertThat(json)
        .extractingByKey("plugins", LIST)
        .hasSizeGreaterThan(5)
        .allSatisfy(plugin ->
            assertThat(plugin)
                .asInstanceOf(MAP)
                .containsKeys("kind", "name", "module", "description", "available")
                .satisfiesAnyOf(
                    p -> assertThat(p).containsEntry("available", true).containsKey("detail"),
                    p ->
                        assertThat(p)
                            .containsEntry("available", false)
                            .containsKeys("reason", "remedy")));
  }

  @Test
  void tableHasALineForEachPlugin() {
    List<String> lines = CommandRun.of("info").lines();
    assertThat(lines)
        .anyMatch(line -> line.matches("ok +collective +all-gather-gemm .*"))
        .anyMatch(line -> line.matches("ok +device +host .*"))
        .anyMatch(line -> line.matches("ok +transport +shared-memory .*inside a node.*"))
        .anyMatch(line -> line.matches("ok +transport +emulated .*between nodes, emulated; .*"));
    assertThat(lines).noneMatch(line -> line.matches(".*emulated; emulated.*"));
  }

  @Test
  void aLauncherThatSaysTooLittleHasAReason() {
    Config config = Config.defaults().option("rank", "5");
    CommandRun run = CommandRun.of(config, "info");
    assertThat(run.code()).isZero();
    assertThat(run.lines()).anyMatch(line -> line.matches("no +launcher +reason: .+"));
    assertThat(CommandRun.of(config, "info", "--json").json())
        .extractingByKey("launcher", MAP)
        .containsEntry("name", null)
        .containsKeys("reason", "remedy");
  }
}
