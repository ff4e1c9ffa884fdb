package org.mkernel.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.InstanceOfAssertFactories.LIST;
import static org.assertj.core.api.InstanceOfAssertFactories.MAP;
import static org.assertj.core.api.InstanceOfAssertFactories.STRING;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.mkernel.cli.io.TensorFile;

/** {@code mkernel run}: the document, the table, and files in and out. */
final class RunCommandTest {
  private static final String[] SMALL = {
    "run", "all-gather-gemm", "--m", "70", "--n", "9", "--k", "5", "--iterations", "2"
  };

  @TempDir Path folder;

  private static CommandRun small(String... more) {
    return CommandRun.of(Stream.concat(Stream.of(SMALL), Stream.of(more)).toArray(String[]::new));
  }

  @Test
  void documentHasEveryFieldWithItsType() {
    CommandRun run = small("--json");
    assertThat(run.code()).isZero();
    assertThat(run.lines()).hasSize(1);
    Map<String, Object> json = run.json();
    assertThat(json)
        .containsOnlyKeys(
            "schema",
            "operator",
            "nodes",
            "ranksPerNode",
            "world",
            "device",
            "dtype",
            "shape",
            "transport",
            "verified",
            "wrong",
            "maxAbsError",
            "elements",
            "digest",
            "timesMs",
            "bytes",
            "tasks",
            "lanes")
        .containsEntry("schema", 1L)
        .containsEntry("operator", "all-gather-gemm")
        .containsEntry("nodes", 2L)
        .containsEntry("ranksPerNode", 2L)
        .containsEntry("world", 4L)
        .containsEntry("device", "host")
        .containsEntry("dtype", "f32")
        .containsEntry("shape", Map.of("m", 70L, "n", 9L, "k", 5L))
        .containsEntry("verified", true)
        .containsEntry("wrong", 0L)
        .containsEntry("maxAbsError", 0.0)
        .containsEntry("elements", 4L * 70 * 9);
    assertThat(json).extractingByKey("digest", STRING).matches("[0-9a-f]{64}");
    assertThat(json).extractingByKey("tasks").isInstanceOf(Long.class);
    assertThat(json)
        .extractingByKey("lanes", LIST)
        .isNotEmpty()
        .allMatch(lane -> lane instanceof String text && text.matches("[a-z]+=\\d+"));
    assertThat(json)
        .extractingByKey("timesMs", MAP)
        .containsOnlyKeys("plan", "check", "fused", "computeAlone", "communicationAlone")
        .extractingByKeys("plan", "check", "fused", "computeAlone", "communicationAlone")
        .hasOnlyElementsOfType(Double.class);
    assertThat(json)
        .extractingByKey("bytes", MAP)
        .containsEntry("inter", 70L * 5 * 4)
        .containsEntry("interExpected", 70L * 5 * 4)
        .extractingByKey("intra")
        .isInstanceOf(Long.class);
  }

  @Test
  void documentTellsTheTransportsAndWhy() {
    assertThat(small("--json").json())
        .extractingByKey("transport", MAP)
        .containsOnlyKeys("intra", "inter")
        .allSatisfy((name, choice) ->
            assertThat(choice)
                .asInstanceOf(MAP)
                .containsOnlyKeys("name", "reason", "emulated")
                .containsEntry("emulated", name.equals("inter"))
                .extractingByKeys("name", "reason")
                .hasOnlyElementsOfType(String.class));
  }

  @Test
  void whatThereIsNoneOfIsNull() {
    Map<String, Object> json =
        small("--json", "--no-verify", "--nodes", "1", "--ranks-per-node", "1").json();
    for (String key : new String[] {"verified", "wrong", "maxAbsError", "elements"}) {
      assertThat(json).containsEntry(key, null);
    }
    assertThat(json)
        .extractingByKey("transport", MAP)
        .containsEntry("intra", null)
        .containsEntry("inter", null);
  }

  @Test
  void tableSaysTheSameInWords() {
    CommandRun run = small();
    assertThat(run.code()).isZero();
    assertThat(run.out())
        .contains(
            "2 nodes of 2 ranks, on device host",
            "m 70, n 9, k 5, f32",
            "shared-memory: ",
            "emulated: ",
            "1,400 bytes between nodes, the least that is possible",
            "median of 2 launches",
            "right: 2,520 elements, each to the last bit")
        .doesNotContain("emulated (emulated)");
    assertThat(small("--no-verify").out()).contains("not verified: --no-verify");
    assertThat(small("--epilogue", "gelu").out()).contains("within rounding");
  }

  @Test
  void theSeedAndNothingElseMakesTheInputs() {
    String digest = (String) small("--json").json().get("digest");
    assertThat(small("--json", "--lanes", "compute=2").json()).containsEntry("digest", digest);
    assertThat(small("--json", "-o", "emulated.adversarial=7").json())
        .containsEntry("digest", digest);
    assertThat(small("--json", "--seed", "2").json()).doesNotContainEntry("digest", digest);
  }

  @Test
  void anOutputCanBeAnInput() {
    Path c = folder.resolve("c.npy");
    Path b = folder.resolve("b.safetensors");
    assertThat(small("--output", c.toString()).code()).isZero();
    try (TensorFile whole = TensorFile.open(c.toString())) {
      assertThat(whole.rows()).isEqualTo(70);
      assertThat(whole.columns()).isEqualTo(4 * 9);
    }
    assertThat(
            CommandRun.of("run", "all-gather", "--m", "5", "--k", "36", "--output", b.toString())
                .code())
        .isZero();
    CommandRun chained =
        CommandRun.of(
            "run", "all-gather-gemm", "--m=70", "--n=9", "--k=36", "--input=a=" + c, "--json");
    assertThat(chained.code()).as(chained.err()).isZero();
    assertThat(chained.json()).containsEntry("verified", true);
    assertThat(files()).containsExactlyInAnyOrder("b.safetensors", "c.npy");
  }

  @Test
  void aFailedRunKeepsTheFileThatIsThere() throws Exception {
    Path c = Files.writeString(folder.resolve("c.npy"), "precious");
    CommandRun run =
        small("--output", c.toString(), "--deadline=0.3", "-o=emulated.fault=lost-link:0-2@1");
    assertThat(run.code()).isEqualTo(ExitCode.ENVIRONMENT);
    assertThat(c).hasContent("precious");
    assertThat(files()).containsExactly("c.npy");
  }

  @Test
  void traceHasARowForEachLane() throws Exception {
    Path trace = folder.resolve("trace.json");
    assertThat(small("--trace", trace.toString()).code()).isZero();
    assertThat(Json.object(Files.readString(trace)))
        .extractingByKey("traceEvents", LIST)
        .hasSizeGreaterThan(20);
  }

  private Stream<String> files() {
    try (Stream<Path> all = Files.list(folder)) {
      return all.map(path -> path.getFileName().toString()).toList().stream();
    } catch (java.io.IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
  }
}
