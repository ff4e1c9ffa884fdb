package org.mkernel.testsuite;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.mkernel.api.Config;
import org.mkernel.api.DType;
import org.mkernel.api.MKernelException;
import org.mkernel.api.MismatchException;
import org.mkernel.api.Operation;
import org.mkernel.api.PeerLostException;
import org.mkernel.api.Rank;
import org.mkernel.api.World;
import org.mkernel.collectives.AllGather;
import org.mkernel.collectives.AllGatherGemm;
import org.mkernel.testkit.ExactRun;

/** Worlds that ranks join one by one: they run, fail and end as worlds of one process do. */
final class JoinTest {
  private static final Config CONFIG = Config.defaults();

  private static void each(World world, java.util.function.Consumer<Rank> body) {
    world.eachLocalRank(body);
  }

  private static Operation gemm(Rank rank) {
    var a = rank.allocate(DType.F32, 8, 4);
    var b = rank.allocate(DType.F32, 4, 4);
    var c = rank.allocate(DType.F32, 8L * rank.size(), 4);
    return rank.prepare(AllGatherGemm.of(a, b, c));
  }

  private static void await(Operation operation) {
    operation.await(operation.launch(), TimeUnit.SECONDS.toNanos(20));
  }

  @Test
  void ranksOfOneNodeGiveTheSameAsInOneProcess() throws Exception {
    var problem = Problems.gemm(1, 4, DType.F32, 130, 70, 33);
    JoinedRanks.hasNone(
        JoinedRanks.run(
            CONFIG,
            1,
            4,
            (mkernel, world) -> {
              ExactRun.Result result =
                  new ExactRun(world, mkernel.collective(Problems.GEMM), problem)
                      .iterations(20)
                      .run();
              assertThat(result.wrong()).isZero();
              assertThat(result.elements()).isEqualTo(20L * 130 * 70);
            }));
  }

  /** No launcher, no variables: an exchange ties ranks together, on one node and on several. */
  @ParameterizedTest
  @ValueSource(ints = {1, 3})
  void anExchangeOfTheCallerIsEnough(int nodes) throws Exception {
    int size = 3;
    var problem = Problems.gemm(nodes, size / nodes, DType.F32, 130, 70, 33);
    byte[][] parts = new byte[size][];
    CyclicBarrier barrier = new CyclicBarrier(size);
    JoinedRanks.hasNone(
        JoinedRanks.runEach(
            size,
            rank -> {
              Config config =
                  CONFIG.exchange(own -> {
                    try {
                      parts[rank] = own;
                      barrier.await(1, TimeUnit.MINUTES);
                      List<byte[]> all = List.of(parts.clone());
                      barrier.await(1, TimeUnit.MINUTES);
                      return all;
                    } catch (Exception e) {
                      throw new IllegalStateException(e);
                    }
                  });
              return nodes == 1 ? config : config.option("node", Integer.toString(rank));
            },
            (mkernel, world) -> {
              assertThat(world.topology().nodes()).isEqualTo(nodes);
              ExactRun.Result result =
                  new ExactRun(world, mkernel.collective(Problems.GEMM), problem).run();
              assertThat(result.wrong()).isZero();
            }));
  }

  @Test
  void anotherOrderOfLaunchesIsAMismatchOnAllRanks() throws Exception {
    List<@Nullable Throwable> thrown =
        JoinedRanks.run(
            CONFIG,
            1,
            3,
            (mkernel, world) ->
                each(
                    world,
                    rank -> {
                      Operation first = gemm(rank);
                      Operation second =
                          rank.prepare(
                              AllGather.of(
                                  rank.allocate(DType.F32, 8, 4),
                                  rank.allocate(DType.F32, 8L * rank.size(), 4)));
                      await(first);
                      await(rank.index() == 1 ? first : second);
                    }));
    for (Throwable e : thrown) {
      assertThat(e)
          .isInstanceOf(MismatchException.class)
          .hasMessageContaining("launch 2 of rank")
          .hasMessageContaining("operation 0, all-gather-gemm")
          .hasMessageContaining("operation 1, all-gather");
    }
  }

  @Test
  void otherShapesAreAMismatchOnAllRanks() throws Exception {
    List<@Nullable Throwable> thrown =
        JoinedRanks.run(
            CONFIG,
            1,
            3,
            (mkernel, world) ->
                each(
                    world,
                    rank -> {
                      long k = rank.index() == 2 ? 5 : 4;
                      var a = rank.allocate(DType.F32, 8, k);
                      var b = rank.allocate(DType.F32, k, 4);
                      var c = rank.allocate(DType.F32, 8L * rank.size(), 4);
                      rank.prepare(AllGatherGemm.of(a, b, c));
                    }));
    assertThat(thrown).allMatch(MismatchException.class::isInstance);
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 2})
  void aRankThatDoesNotLaunchIsBlamedByAll(int absent) throws Exception {
    List<@Nullable Throwable> thrown =
        JoinedRanks.run(
            CONFIG.option("deadline", "1"),
            1,
            3,
            (mkernel, world) ->
                each(
                    world,
                    rank -> {
                      Operation operation = gemm(rank);
                      await(operation);
                      if (rank.index() == absent) {
                        while (rank.failure().isEmpty()) {
                          Thread.onSpinWait();
                        }
                        throw rank.failure().get().copy();
                      }
                      await(operation);
                    }));
    for (Throwable e : thrown) {
      assertThat(e)
          .isInstanceOf(PeerLostException.class)
          .hasMessageContaining("rank %d has launched only epoch 1", absent);
      assertThat(((MKernelException) e).failure().peer()).hasValue(absent);
    }
  }

  @Test
  void aFailureOfOneRankEndsAll() throws Exception {
    List<@Nullable Throwable> thrown =
        JoinedRanks.run(
            CONFIG,
            1,
            3,
            (mkernel, world) ->
                each(
                    world,
                    rank -> {
                      Operation operation = gemm(rank);
                      if (rank.index() == 2) {
                        throw new IllegalStateException("out of luck");
                      }
                      await(operation);
                    }));
    assertThat(thrown.get(2)).isInstanceOf(IllegalStateException.class);
    for (Throwable e : thrown.subList(0, 2)) {
      assertThat(e)
          .isInstanceOf(PeerLostException.class)
          .hasMessageContaining("rank 2 ended with")
          .hasMessageContaining("out of luck");
    }
  }

  @Test
  void worldsCanBeJoinedAnew() throws Exception {
    for (int i = 0; i < 3; i++) {
      JoinedRanks.hasNone(
          JoinedRanks.run(
              CONFIG,
              1,
              2,
              (mkernel, world) ->
                  each(
                      world,
                      rank -> {
                        try (Operation operation = gemm(rank)) {
                          await(operation);
                        }
                      })));
    }
  }

  @Test
  void theEmulatedNicIsNoTransportBetweenProcesses() throws Exception {
    List<@Nullable Throwable> thrown =
        JoinedRanks.run(CONFIG.option("transport", "emulated"), 2, 1, (mkernel, world) -> {});
    for (Throwable e : thrown) {
      assertThat(e).hasMessageContaining("works inside one process");
    }
  }
}
