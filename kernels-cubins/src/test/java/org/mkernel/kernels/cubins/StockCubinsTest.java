package org.mkernel.kernels.cubins;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

final class StockCubinsTest {
  /** What the build wrote of each function, by column. */
  private static List<Map<String, String>> report() throws IOException {
    List<String> lines = Files.readAllLines(Path.of(System.getProperty("mkernel.kernels")));
    String[] names = lines.getFirst().split("\t", -1);
    return lines.stream()
        .skip(1)
        .map(line -> {
          String[] values = line.split("\t", -1);
          Map<String, String> row = new HashMap<>();
          IntStream.range(0, names.length).forEach(i -> row.put(names[i], values[i]));
          return row;
        })
        .toList();
  }

  @Test
  void everyStockProgramIsHere() throws IOException {
    assertThat(report()).isNotEmpty();
    for (Map<String, String> row : report()) {
      try (InputStream entry = new StockCubins().open(row.get("digest")).orElseThrow()) {
        assertThat(entry.readAllBytes().length)
            .isGreaterThan(Integer.parseInt(row.get("cubin bytes")));
      }
    }
  }

  @Test
  void noFunctionSpillsOrUsesAStack() throws IOException {
    for (Map<String, String> row : report()) {
      assertThat(row)
          .containsEntry("spill store bytes", "0")
          .containsEntry("spill load bytes", "0")
          .containsEntry("stack bytes", "0");
    }
  }

  @Test
  void kernelsFitTheRegistersOfAMultiprocessor() throws IOException {
    for (Map<String, String> row : report()) {
      if (row.get("function").equals("mkernel_interpreter")) {
        assertThat(Integer.parseInt(row.get("registers")) * 384).isLessThanOrEqualTo(65536);
      }
    }
  }

  @Test
  void whatIsNotShippedIsNotHere() {
    assertThat(new StockCubins().open("0".repeat(64))).isEmpty();
  }
}
