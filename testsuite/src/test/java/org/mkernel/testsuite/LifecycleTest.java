package org.mkernel.testsuite;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.mkernel.api.ClosedException;
import org.mkernel.api.Collective;
import org.mkernel.api.Config;
import org.mkernel.api.DType;
import org.mkernel.api.MKernel;
import org.mkernel.api.MKernelException;
import org.mkernel.api.MismatchException;
import org.mkernel.api.Operation;
import org.mkernel.api.Rank;
import org.mkernel.api.Tensor;
import org.mkernel.api.UnavailableException;
import org.mkernel.api.UsageException;
import org.mkernel.api.World;
import org.mkernel.collectives.AllGatherGemm;

/** What is collective, who owns what, in which order, and what happens when it is not kept. */
final class LifecycleTest {
  private static final long SECONDS_20 = TimeUnit.SECONDS.toNanos(20);

  private static void world(int nodes, int ranks, Consumer<World> test) {
    try (MKernel mkernel = MKernel.open(Config.defaults().option("deadline", "5"));
        World world = mkernel.local(nodes, ranks)) {
      test.accept(world);
    }
  }

  private static Operation prepare(Rank rank, long n) {
    Tensor a = rank.allocate(DType.F32, 8, 4);
    Tensor b = rank.allocate(DType.F32, 4, n);
    Tensor c = rank.allocate(DType.F32, 8L * rank.size(), n);
    return rank.prepare(AllGatherGemm.of(a, b, c));
  }

  @Test
  void launchesCountEpochsFromOne() {
    world(
        2,
        1,
        world ->
            world.eachLocalRank(rank -> {
              try (Operation operation = prepare(rank, 4)) {
                for (long epoch = 1; epoch <= 50; epoch++) {
                  assertThat(operation.launch()).isEqualTo(epoch);
                  operation.await(epoch, SECONDS_20);
                }
              }
            }));
  }

  @Test
  void anotherOrderOfLaunchesIsAMismatchAtOnce() {
    world(
        2,
        1,
        world -> {
          long start = System.nanoTime();
          assertThatThrownBy(() ->
                  world.eachLocalRank(rank -> {
                    Operation first = prepare(rank, 4);
                    Operation second = prepare(rank, 4);
                    Operation mine = rank.index() == 0 ? first : second;
                    mine.await(mine.launch(), SECONDS_20);
                  }))
              .isInstanceOf(MismatchException.class);
          assertThat(System.nanoTime() - start).isLessThan(TimeUnit.SECONDS.toNanos(4));
        });
  }

  @Test
  void otherShapesAreAMismatchThatNamesTheRanks() {
    world(
        2,
        1,
        world ->
            assertThatThrownBy(() ->
                    world.eachLocalRank(rank -> {
                      Operation _ = prepare(rank, 4 + rank.index());
                    }))
                .isInstanceOf(MismatchException.class)
                .hasMessageContaining("rank 1"));
  }

  @Test
  void aSecondLaunchInFlightIsRefused() {
    world(
        1,
        1,
        world ->
            world.eachLocalRank(rank -> {
              Tensor a = rank.allocate(DType.F32, 1500, 1500);
              Tensor b = rank.allocate(DType.F32, 1500, 1500);
              Tensor c = rank.allocate(DType.F32, 1500, 1500);
              Operation operation = rank.prepare(AllGatherGemm.of(a, b, c));
              long epoch = operation.launch();
              assertThatThrownBy(operation::launch)
                  .isInstanceOf(UsageException.class)
                  .hasMessageContaining("in flight");
              operation.await(epoch, SECONDS_20);
              operation.close();
              assertThatThrownBy(operation::launch).isInstanceOf(ClosedException.class);
            }));
  }

  @Test
  void aBoundTensorIsNotClosed() {
    world(
        1,
        1,
        world ->
            world.eachLocalRank(rank -> {
              Tensor a = rank.allocate(DType.F32, 8, 4);
              Tensor b = rank.allocate(DType.F32, 4, 4);
              Tensor c = rank.allocate(DType.F32, 8, 4);
              Operation operation = rank.prepare(AllGatherGemm.of(a, b, c));
              assertThatThrownBy(a::close).isInstanceOf(UsageException.class);
              operation.close();
              a.close();
              a.close();
              assertThatThrownBy(a::address).isInstanceOf(ClosedException.class);
              assertThatThrownBy(() -> rank.prepare(AllGatherGemm.of(a, b, c)))
                  .isInstanceOf(ClosedException.class);
            }));
  }

  @Test
  void aWorldThatIsClosedThrows() {
    try (MKernel mkernel = MKernel.open(Config.defaults())) {
      World world = mkernel.local(1, 2);
      world.close();
      world.close();
      assertThatThrownBy(() -> world.eachLocalRank(rank -> {})).isInstanceOf(ClosedException.class);
    }
  }

  @Test
  void aRankThatThrowsEndsTheOthers() {
    world(
        2,
        2,
        world -> {
          long start = System.nanoTime();
          assertThatThrownBy(() ->
                  world.eachLocalRank(rank -> {
                    if (rank.index() == 3) {
                      throw new IllegalArgumentException("seeded");
                    }
                    Operation _ = prepare(rank, 4);
                  }))
              .isInstanceOf(IllegalArgumentException.class);
          assertThat(System.nanoTime() - start).isLessThan(TimeUnit.SECONDS.toNanos(4));
          assertThat(world.failure()).isPresent();
          assertThatThrownBy(() -> world.eachLocalRank(rank -> {}))
              .isInstanceOf(MKernelException.class)
              .hasMessageContaining("seeded");
        });
  }

  @Test
  void closingInFlightAborts() {
    world(
        2,
        1,
        world ->
            assertThatThrownBy(() ->
                    world.eachLocalRank(rank -> {
                      Operation operation = prepare(rank, 4);
                      if (rank.index() == 0) {
                        operation.launch();
                        operation.close();
                      } else {
                        sleep(300);
                        operation.await(operation.launch(), SECONDS_20);
                      }
                    }))
                .isInstanceOf(ClosedException.class));
  }

  @Test
  void unknownOperatorsAndMissingOperandsAreNamed() {
    world(
        1,
        1,
        world ->
            world.eachLocalRank(rank ->
                assertThatThrownBy(
                        () -> rank.prepare(Collective.of("all-to-none", Map.of(), Map.of())))
                    .isInstanceOf(UnavailableException.class)
                    .hasMessageContaining("all-gather-gemm")));
    world(
        1,
        1,
        world ->
            world.eachLocalRank(rank -> {
              Map<String, Tensor> operands = new HashMap<>();
              operands.put("a", rank.allocate(DType.F32, 8, 4));
              assertThatThrownBy(
                      () -> rank.prepare(Collective.of(Problems.GEMM, operands, Map.of())))
                  .isInstanceOf(UsageException.class);
            }));
  }

  static void sleep(long millis) {
    try {
      Thread.sleep(millis);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
