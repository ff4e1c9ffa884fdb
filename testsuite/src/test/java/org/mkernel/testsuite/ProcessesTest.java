package org.mkernel.testsuite;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The command in several processes: right, reported once, and ended by whatever ends one of them.
 */
final class ProcessesTest {
  private static final double DEADLINE_SECONDS = 2;
  private static final String[] ENDLESS = {
    "run", "all-gather-gemm", "--m=64", "--n=16", "--k=16", "--iterations=100000000", "--no-verify"
  };

  @TempDir Path folder;

  private static String field(String json, String name) {
    Matcher matcher = Pattern.compile("\"%s\":\"?([^\",}]*)".formatted(name)).matcher(json);
    assertThat(matcher.find()).as("%s in %s", name, json).isTrue();
    return matcher.group(1);
  }

  @ParameterizedTest
  @CsvSource({"2, 1", "1, 2", "2, 2"})
  void runAsInOneProcessAndReportOnce(int nodes, int ranksPerNode) throws Exception {
    String[] arguments = {"run", "all-gather-gemm", "--json", "--iterations=20"};
    try (Processes processes = new Processes(folder)) {
      processes.startAll(nodes, ranksPerNode, Map.of(), arguments);
      processes.start(
          Map.of(),
          "run",
          "all-gather-gemm",
          "--json",
          "--nodes=" + nodes,
          "--ranks-per-node=" + ranksPerNode);
      int size = nodes * ranksPerNode;
      for (int rank = 0; rank <= size; rank++) {
        assertThat(processes.await(rank)).as(processes.err(rank)).isZero();
      }
      String joined = processes.out(0);
      String alone = processes.out(size);
      assertThat(field(joined, "wrong")).isEqualTo("0");
      assertThat(field(joined, "nodes")).isEqualTo(Integer.toString(nodes));
      for (String same : new String[] {"digest", "elements", "tasks", "world"}) {
        assertThat(field(joined, same)).isEqualTo(field(alone, same));
      }
      assertThat(joined.contains("\"inter\":{\"name\":\"tcp\"")).isEqualTo(nodes > 1);
      assertThat(joined.contains("\"intra\":{\"name\":\"shared-memory\""))
          .isEqualTo(ranksPerNode > 1);
      for (int rank = 1; rank < size; rank++) {
        assertThat(processes.out(rank)).isEmpty();
      }
    }
  }

  /** Ends one rank amid launches; the others must end in time, with the blame on it. */
  private void assertAllHearOf(int victim, String signal, double slackSeconds) throws Exception {
    try (Processes processes = new Processes(folder)) {
      processes.startAll(
          4,
          1,
          Map.of(
              "MKERNEL_LOG_LEVEL", "info", "MKERNEL_DEADLINE", Double.toString(DEADLINE_SECONDS)),
          ENDLESS);
      processes.awaitWords("prepared all-gather-gemm");
      long start = System.nanoTime();
      String pid = Long.toString(processes.process(victim).pid());
      assertThat(new ProcessBuilder("kill", "-" + signal, pid).start().waitFor()).isZero();
      for (int rank = 0; rank < 4; rank++) {
        if (rank == victim) {
          continue;
        }
        assertThat(processes.await(rank)).as(processes.err(rank)).isEqualTo(3);
        assertThat(System.nanoTime() - start)
            .isLessThan((long) ((DEADLINE_SECONDS + slackSeconds) * TimeUnit.SECONDS.toNanos(1)));
        assertThat(processes.err(rank))
            .as("what rank %d says", rank)
            .containsPattern("look at (the end of |the output of )?rank %d".formatted(victim));
      }
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 2})
  void aKilledRankEndsAllWithTheBlameOnIt(int victim) throws Exception {
    assertAllHearOf(victim, "KILL", 1);
  }

  @Tag("slow")
  @ParameterizedTest
  @ValueSource(ints = {1, 3})
  void anyKilledRankEndsAllWithTheBlameOnIt(int victim) throws Exception {
    assertAllHearOf(victim, "KILL", 1);
  }

  @Tag("slow")
  @ParameterizedTest
  @ValueSource(ints = {0, 1, 3})
  void aFrozenRankEndsAllWithTheBlameOnIt(int victim) throws Exception {
    assertAllHearOf(victim, "STOP", 4);
  }

  @Test
  void aSettingThatOnlyOneRankHasIsNamed() throws Exception {
    int port = JoinedRanks.freePort();
    try (Processes processes = new Processes(folder)) {
      for (int rank = 0; rank < 2; rank++) {
        processes.start(
            Map.of(
                "MKERNEL_RANK",
                Integer.toString(rank),
                "MKERNEL_WORLD_SIZE",
                "2",
                "MKERNEL_NODE",
                Integer.toString(rank),
                "MKERNEL_RENDEZVOUS",
                "127.0.0.1:" + port),
            "run",
            "all-gather-gemm",
            rank == 0 ? "--k=64" : "--k=32");
      }
      for (int rank = 0; rank < 2; rank++) {
        assertThat(processes.await(rank)).as(processes.err(rank)).isBetween(2, 3);
        assertThat(processes.err(rank)).contains("64").contains("32");
      }
    }
  }

  /** What ranks share has no name in any folder, and so no folder bounds it. */
  @Test
  void aSharedMemoryFolderOf64KibibytesIsEnough() throws Exception {
    String mount = "mount -t tmpfs -o size=64k none /dev/shm";
    assumeTrue(
        new ProcessBuilder("unshare", "-m", "sh", "-c", mount).start().waitFor() == 0,
        "nothing can be mounted here: it takes root");
    try (Processes processes = Processes.after(folder, mount, "unshare", "-m")) {
      processes.startAll(1, 2, Map.of(), "run", "all-gather-gemm", "--json");
      for (int rank = 0; rank < 2; rank++) {
        assertThat(processes.await(rank)).as(processes.err(rank)).isZero();
      }
      assertThat(field(processes.out(0), "wrong")).isEqualTo("0");
    }
  }

  @Test
  void sharedMemoryThatCannotBeHadIsAnExceptionAndNoBusError() throws Exception {
    try (Processes processes = Processes.after(folder, "ulimit -f 256")) {
      processes.startAll(1, 2, Map.of(), "run", "all-gather-gemm", "--m=4096");
      for (int rank = 0; rank < 2; rank++) {
        assertThat(processes.await(rank)).as(processes.err(rank)).isEqualTo(3);
        assertThat(processes.err(rank))
            .contains("bytes of shared memory can't be had: error 27", "ulimit -f");
      }
    }
  }
}
