package org.mkernel.testsuite;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.mkernel.api.Config;
import org.mkernel.api.DType;
import org.mkernel.api.MismatchException;
import org.mkernel.testkit.ExactRun;

/** The wire over sockets: exact in every world, and the same bits as the emulated NIC. */
final class TcpTest {
  private static final Config TCP = Config.defaults().option("transport", "tcp");

  @ParameterizedTest
  @CsvSource({
    "2, 1, 1, 7, 5, 3",
    "2, 2, 4, 129, 257, 65",
    "3, 2, 3, 512, 384, 256",
    "4, 1, 8, 1000, 24, 4096",
    "2, 1, 4, 2048, 16, 2048",
    "5, 1, 2, 3, 8, 16"
  })
  void isExactInOneProcess(int nodes, int ranks, int streams, long m, long n, long k) {
    var problem = Problems.gemm(nodes, ranks, DType.F32, m, n, k);
    ExactRun.Result tcp =
        Problems.run(TCP.option("tcp.streams", Integer.toString(streams)), problem, 5);
    assertThat(tcp.wrong()).isZero();
    assertThat(tcp.report().inter().orElseThrow().name()).isEqualTo("tcp");
    assertThat(tcp.digest()).isEqualTo(Problems.run(Config.defaults(), problem, 5).digest());
  }

  @Test
  void queuesOfOnePieceAreEnough() {
    var problem = Problems.gemm(2, 2, DType.BF16, 512, 64, 512, "chunk-rows", "16");
    assertThat(Problems.run(TCP.option("tcp.queue", "1"), problem, 5).wrong()).isZero();
  }

  @ParameterizedTest
  @CsvSource({"2, 1", "4, 1", "2, 2"})
  void isExactBetweenRanksThatJoined(int nodes, int ranks) throws Exception {
    var problem = Problems.gemm(nodes, ranks, DType.F32, 300, 70, 513);
    Set<String> names = ConcurrentHashMap.newKeySet();
    JoinedRanks.hasNone(
        JoinedRanks.run(
            Config.defaults().option("secret", "a secret of the tests, long enough"),
            nodes,
            ranks,
            (mkernel, world) -> {
              ExactRun.Result result =
                  new ExactRun(world, mkernel.collective(Problems.GEMM), problem)
                      .iterations(30)
                      .run();
              assertThat(result.wrong()).isZero();
              names.add(result.report().inter().orElseThrow().name());
            }));
    assertThat(names).containsExactly("tcp");
  }

  @Test
  void operationsComeAndGo() throws Exception {
    JoinedRanks.hasNone(
        JoinedRanks.run(
            Config.defaults(),
            2,
            1,
            (mkernel, world) -> {
              for (int i = 1; i <= 10; i++) {
                var problem = Problems.gemm(2, 1, DType.F32, 16L * i, 8, 8);
                assertThat(
                        new ExactRun(world, mkernel.collective(Problems.GEMM), problem)
                            .run()
                            .wrong())
                    .isZero();
              }
            }));
  }

  @Test
  void otherNumbersOfStreamsAreAMismatch() throws Exception {
    Map<Integer, Throwable> all = new ConcurrentHashMap<>();
    int port = JoinedRanks.freePort();
    List<Thread> threads =
        java.util.stream.IntStream.range(0, 2)
            .mapToObj(rank ->
                Thread.ofPlatform()
                    .start(() -> {
                      Config config =
                          JoinedRanks.config(
                              TCP.option("tcp.streams", Integer.toString(1 + rank)),
                              rank,
                              2,
                              1,
                              port);
                      try (var mkernel = org.mkernel.api.MKernel.open(config);
                          var world = mkernel.join()) {
                        assertThat(world).isNull();
                      } catch (RuntimeException e) {
                        all.put(rank, e);
                      }
                    }))
            .toList();
    for (Thread thread : threads) {
      thread.join();
    }
    for (@Nullable Throwable e : all.values()) {
      assertThat(e)
          .isInstanceOf(MismatchException.class)
          .hasMessageContaining("connections to each peer");
    }
    assertThat(all).hasSize(2);
  }
}
