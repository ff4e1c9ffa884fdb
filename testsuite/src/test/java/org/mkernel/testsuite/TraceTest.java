package org.mkernel.testsuite;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.mkernel.api.Config;
import org.mkernel.api.DType;
import org.mkernel.api.spi.Problem;

/** What a trace shows of a run: every lane, what it waited for, and what the proxy sent. */
final class TraceTest {
  @TempDir private Path folder;

  private static long count(String text, String pattern) {
    return Pattern.compile(pattern).matcher(text).results().count();
  }

  @Test
  void hasLanesWaitsAndEveryTransferOfTheProxy() throws IOException {
    Path file = folder.resolve("trace.json");
    int launches = 3;
    Problem problem = Problems.gemm(2, 2, DType.F32, 256, 64, 64);
    long tasks =
        Problems.run(Config.defaults().option("trace", file.toString()), problem, launches)
            .report()
            .tasks();
    String trace = Files.readString(file);
    assertThat(trace).startsWith("{").endsWith("]}\n").contains("rank 3 on node 1");
    assertThat(count(trace, "\"ph\":\"X\".*\"name\":\"rank")).isEqualTo(tasks * launches);
    assertThat(count(trace, "\"name\":\"wait: rank")).isPositive();
    long transfers = count(trace, "\"ph\":\"b\".*\"cat\":\"proxy (PUT|NOTIFY)\"");
    assertThat(transfers).isPositive();
    assertThat(transfers % launches).isZero();
    assertThat(count(trace, "\"ph\":\"e\".*\"cat\":\"proxy (PUT|NOTIFY)\"")).isEqualTo(transfers);
  }
}
