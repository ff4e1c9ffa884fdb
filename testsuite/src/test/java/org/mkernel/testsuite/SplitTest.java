package org.mkernel.testsuite;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.mkernel.api.ClosedException;
import org.mkernel.api.Config;
import org.mkernel.api.DType;
import org.mkernel.api.MKernel;
import org.mkernel.api.MKernelException;
import org.mkernel.api.Operation;
import org.mkernel.api.Rank;
import org.mkernel.api.Tensor;
import org.mkernel.api.UsageException;
import org.mkernel.api.World;
import org.mkernel.collectives.AllReduce;
import org.mkernel.testkit.ExactRun;

/** Worlds of some of the ranks of another world. */
final class SplitTest {
  private static final long SECONDS_20 = TimeUnit.SECONDS.toNanos(20);

  /** Sums a number of each rank, in place. */
  private static float sum(Rank rank, Tensor tensor, float own) {
    try (Arena arena = Arena.ofConfined();
        Operation operation = rank.prepare(AllReduce.of(tensor, tensor))) {
      MemorySegment value = arena.allocate(Float.BYTES, Float.BYTES);
      value.set(ValueLayout.JAVA_FLOAT, 0, own);
      tensor.write(0, value);
      operation.await(operation.launch(), SECONDS_20);
      tensor.read(0, value);
      return value.get(ValueLayout.JAVA_FLOAT, 0);
    }
  }

  @Test
  void ranksAndNodesAreNumberedAnew() {
    try (MKernel mkernel = MKernel.open(Config.defaults());
        World world = mkernel.local(3, 2)) {
      // Rank 0 is in none; node 0 is in none of the second group.
      List<World> parts = world.split(rank -> rank == 0 ? -1 : rank < 3 ? 7 : 1);
      assertThat(parts).hasSize(2);
      assertThat(parts.getFirst().topology().nodes()).isEqualTo(2);
      assertThat(parts.getFirst().size()).isEqualTo(3);
      assertThat(parts.getFirst().topology().ranks(0)).isEqualTo(1);
      assertThat(parts.getLast().size()).isEqualTo(2);
      assertThat(parts.getLast().localRanks()).extracting(Rank::index).containsExactly(0, 1);
    }
  }

  @Test
  void everyOperatorRunsInAPart() {
    try (MKernel mkernel = MKernel.open(Config.defaults());
        World world = mkernel.local(3, 2)) {
      // The first ranks of all nodes, and the second ones of two.
      List<World> parts = world.split(rank -> rank == 5 ? -1 : rank % 2);
      for (String operator : Problems.names()) {
        for (World part : parts) {
          var problem = Problems.of(operator, part.size(), 1, DType.F32, 33, 20, 17);
          assertThat(new ExactRun(part, mkernel.collective(operator), problem).run().wrong())
              .isZero();
        }
      }
    }
  }

  @Test
  void tensorsOfTheWholeServeItsPartsAndAreBoundOnce() {
    try (MKernel mkernel = MKernel.open(Config.defaults());
        World world = mkernel.local(2, 2)) {
      Tensor[] tensors = new Tensor[4];
      world.eachLocalRank(rank -> {
        tensors[rank.index()] = rank.allocate(DType.F32, 1, 1);
        assertThat(sum(rank, tensors[rank.index()], 1)).isEqualTo(4);
      });
      List<World> rows = world.split(rank -> rank / 2);
      List<World> columns = world.split(rank -> rank % 2);
      for (int part = 0; part < 2; part++) {
        int number = part;
        rows.get(part)
            .eachLocalRank(rank -> {
              Tensor own = tensors[number * 2 + rank.index()];
              assertThat(sum(rank, own, number * 2 + rank.index())).isEqualTo(4 * number + 1);
            });
        columns
            .get(part)
            .eachLocalRank(rank -> {
              Tensor own = tensors[number + rank.index() * 2];
              assertThat(sum(rank, own, number + rank.index() * 2)).isEqualTo(2 * number + 2);
            });
      }
      rows.getFirst()
          .eachLocalRank(rank -> {
            Tensor foreign = tensors[3 - rank.index()];
            if (rank.index() == 0) {
              assertThatThrownBy(() -> rank.prepare(AllReduce.of(foreign, foreign)))
                  .isInstanceOf(UsageException.class)
                  .hasMessageContaining("no tensor of rank 0");
            } else {
              assertThatThrownBy(() -> rank.prepare(AllReduce.of(foreign, foreign)))
                  .isInstanceOf(UsageException.class);
            }
          });
    }
  }

  @Test
  void aPartFailsAloneAndEndsWithTheWhole() {
    try (MKernel mkernel = MKernel.open(Config.defaults())) {
      World world = mkernel.local(1, 2);
      World first = world.split(rank -> 0).getFirst();
      World second = world.split(rank -> 0).getFirst();
      assertThatThrownBy(() ->
              first.eachLocalRank(rank -> {
                throw new IllegalStateException("seeded");
              }))
          .hasMessageContaining("seeded");
      assertThat(first.failure()).isPresent();
      assertThat(second.failure()).isEmpty();
      world.eachLocalRank(
          rank -> assertThat(sum(rank, rank.allocate(DType.F32, 1, 1), 2)).isEqualTo(4));
      world.close();
      assertThatThrownBy(() -> second.eachLocalRank(rank -> {}))
          .isInstanceOf(ClosedException.class);
      assertThatThrownBy(() -> world.split(rank -> 0)).isInstanceOf(MKernelException.class);
    }
  }

  @Test
  void processesMeetInTheirParts() throws Exception {
    JoinedRanks.hasNone(
        JoinedRanks.run(
            Config.defaults(),
            2,
            2,
            (mkernel, world) -> {
              int whole = world.localRanks().getFirst().index();
              // Across the nodes, then alone, then all but rank 0.
              List<World> pair = world.split(rank -> rank % 2);
              List<World> alone = world.split(rank -> rank);
              List<World> three = world.split(rank -> Math.min(rank, 1) - 1);
              assertThat(pair).hasSize(1);
              assertThat(pair.getFirst().topology().nodes()).isEqualTo(2);
              pair.getFirst()
                  .eachLocalRank(rank -> {
                    Tensor tensor = rank.allocate(DType.F32, 1, 1);
                    assertThat(rank.index()).isEqualTo(whole / 2);
                    assertThat(sum(rank, tensor, whole)).isEqualTo(2 + 2 * (whole % 2));
                  });
              assertThat(alone.getFirst().size()).isEqualTo(1);
              assertThat(three).hasSize(whole == 0 ? 0 : 1);
              three.forEach(part ->
                  part.eachLocalRank(rank -> {
                    Tensor tensor = rank.allocate(DType.F32, 1, 1);
                    assertThat(sum(rank, tensor, 1)).isEqualTo(3);
                  }));
            }));
  }
}
