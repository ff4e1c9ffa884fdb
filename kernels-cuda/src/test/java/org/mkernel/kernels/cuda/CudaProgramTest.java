package org.mkernel.kernels.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

final class CudaProgramTest {
  private static CudaProgram program(
      String name, String source, Map<String, String> headers, String arch, String... options) {
    return new CudaProgram(name, source, new TreeMap<>(headers), arch, List.of(options));
  }

  @Test
  void theDigestDependsOnAllThatIsCompiled() {
    Map<String, String> headers = Map.of("h", "text");
    CudaProgram program = program("name", "source", headers, "sm_90a", "-DA=1", "-DB=2");
    List<CudaProgram> others =
        List.of(
            program("eman", "source", headers, "sm_90a", "-DA=1", "-DB=2"),
            program("name", "source ", headers, "sm_90a", "-DA=1", "-DB=2"),
            program("name", "source", Map.of("h", "texts"), "sm_90a", "-DA=1", "-DB=2"),
            program("name", "source", Map.of("ht", "ext"), "sm_90a", "-DA=1", "-DB=2"),
            program("name", "source", Map.of(), "sm_90a", "-DA=1", "-DB=2"),
            program("name", "source", headers, "sm_100a", "-DA=1", "-DB=2"),
            program("name", "source", headers, "sm_90a", "-DA=1", "-DB=3"),
            program("name", "source", headers, "sm_90a", "-DB=2", "-DA=1"),
            program("name", "source", headers, "sm_90a", "-DA=1"));
    Set<String> digests = new HashSet<>();
    others.forEach(other -> digests.add(other.digest(13010)));
    digests.add(program.digest(13000));
    digests.add(program.digest(13010));
    assertThat(digests).hasSize(others.size() + 2);
    assertThat(program("name", "source", headers, "sm_90a", "-DA=1", "-DB=2").digest(13010))
        .isEqualTo(program.digest(13010))
        .matches("[0-9a-f]{64}");
  }

  @Test
  void aProgramHasTheHeadersThatItIncludesAndNoOthers() {
    Map<String, String> texts =
        Map.of(
            "a.cu", "#include \"b.cuh\"\n  # include \"c.cuh\"\n// \"d.cuh\"\n",
            "b.cuh", "#pragma once\n#include \"c.cuh\"\n",
            "c.cuh", "#pragma once\n#include \"b.cuh\"\n",
            "d.cuh", "");
    CudaProgram program = DeviceSources.program("a.cu", texts::get, "sm_90a", List.of());
    assertThat(program.headers()).containsOnlyKeys("b.cuh", "c.cuh");
  }

  @Test
  void aSourceThatIsNotThereIsNamed() {
    assertThatThrownBy(() -> DeviceSources.program("none.cu", "sm_90a", List.of()))
        .hasMessageContaining("none.cu");
  }

  @Test
  void stockProgramsDiffer() {
    Set<String> digests = new HashSet<>();
    StockKernels.all().forEach(program -> digests.add(program.digest(Nvrtc.SHIPPED)));
    assertThat(digests).hasSameSizeAs(StockKernels.all()).isNotEmpty();
  }
}
