package org.mkernel.collectives;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Map;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.LongRange;
import org.junit.jupiter.api.Test;
import org.mkernel.api.DType;
import org.mkernel.api.schedule.Topology;
import org.mkernel.api.spi.Problem;

final class RowShardingTest {
  @Test
  void lastRanksHaveLessOrNone() {
    RowSharding sharding = RowSharding.of(5, Topology.of(1, 4));
    assertThat(sharding.count(0)).isEqualTo(2);
    assertThat(sharding.count(1)).isEqualTo(2);
    assertThat(sharding.count(2)).isEqualTo(1);
    assertThat(sharding.count(3)).isZero();
    assertThat(sharding.first(3)).isEqualTo(5);
  }

  @Property
  void dealsOutEveryRowOnce(
      @ForAll @LongRange(min = 1, max = 1L << 62) long rows,
      @ForAll @IntRange(min = 1, max = 65536) int ranks) {
    RowSharding sharding = RowSharding.of(rows, Topology.of(1, ranks));
    long next = 0;
    for (int rank = 0; rank < ranks; rank++) {
      assertThat(sharding.first(rank)).isEqualTo(next);
      assertThat(sharding.count(rank)).isBetween(0L, sharding.block());
      if (sharding.count(rank) > 0) {
        assertThat(sharding.owner(next)).isEqualTo(rank);
        assertThat(sharding.owner(next + sharding.count(rank) - 1)).isEqualTo(rank);
      }
      next += sharding.count(rank);
      if (next == rows) {
        break;
      }
    }
    assertThat(next).isEqualTo(rows);
  }

  @Test
  void elementsOfANodeStartAtItsRankAndAtLines() {
    Problem problem =
        new Problem(
            Broadcast.NAME, Topology.of(2, 3), DType.BF16, Map.of("m", 10L, "n", 13L), Map.of());
    RowSharding sharding = RowSharding.ofElementsOnNode(problem, 4);
    assertThat(sharding.block()).isEqualTo(64);
    assertThat(sharding.first(4)).isZero();
    assertThat(sharding.count(4)).isEqualTo(64);
    assertThat(sharding.first(5)).isEqualTo(64);
    assertThat(sharding.count(5)).isEqualTo(64);
    assertThat(sharding.first(3)).isEqualTo(128);
    assertThat(sharding.count(3)).isEqualTo(2);
    assertThat(sharding.count(0)).isZero();
  }
}
