package org.mkernel.check;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.mkernel.api.DType;
import org.mkernel.api.UsageException;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.schedule.ScheduleBuilder;
import org.mkernel.api.schedule.SignalSpec.Scope;
import org.mkernel.api.schedule.Topology;
import org.mkernel.check.Finding.Rule;
import org.mkernel.check.TestPlanner.Fault;

class ScheduleCheckerTest {
  private static CheckReport check(int nodes, int ranksPerNode, Fault... faults) {
    return ScheduleChecker.check(TestPlanner.gather(nodes, ranksPerNode, faults));
  }

  @ParameterizedTest
  @CsvSource({"1,1", "1,2", "2,1", "1,4", "2,2", "3,2", "5,1", "4,4"})
  void goodGatherIsProven(int nodes, int ranksPerNode) {
    Topology topology = Topology.of(nodes, ranksPerNode);
    long world = topology.size();
    long shard = 3L * TestPlanner.CHUNK_BYTES;
    for (boolean ring : new boolean[] {true, false}) {
      for (boolean partWaits : new boolean[] {true, false}) {
        CheckReport report =
            ScheduleChecker.check(new TestPlanner(topology, 3, 4, ring, partWaits).plan());
        assertThat(report.findings()).isEmpty();
        report.requireProven();
        for (Rule rule : Rule.values()) {
          assertThat(report.verdict(rule)).isEqualTo(Claim.Verdict.PROVEN);
        }
        assertThat(report.intraBytes() + report.interBytes())
            .isEqualTo(world * (world - 1) * shard);
        long between =
            ring
                ? (nodes == 1 ? 0 : nodes * (world - 1) * shard)
                : world * (world - ranksPerNode) * shard;
        assertThat(report.interBytes()).isEqualTo(between);
      }
    }
  }

  /** The rule, and the two tasks in words; the second is empty where only one is at fault. */
  @ParameterizedTest
  @CsvSource({
    "DROPPED_WAIT,       RACES,     rank 0 send[0] (put),      rank 1 gemm[12] (compute)",
    "SWAPPED_WAIT,       RACES,     rank 0 send[0] (put),      rank 1 gemm[12] (compute)",
    "SWAPPED_FLAG,       SIGNALS,   rank 0 send[0] (put),      rank 0 send[1] (put)",
    "OVERLAPPING_PUT,    RACES,     rank 0 send[0] (put),      rank 0 send[1] (put)",
    "SHORT_PUT,          SUPPLY,    rank 0 send[0] (put),      rank 1 gemm[12] (compute)",
    "SHORT_SOURCE,       STRUCTURE, rank 0 send[0] (put),      ''",
    "CYCLIC_WAIT,        DEADLOCK,  rank 0 send[0] (put),      rank 1 gemm[12] (compute)",
    "CYCLE_IN_POOL,      DEADLOCK,  rank 0 send[0] (notify),   rank 0 send[1] (notify)",
    "CYCLE_OVER_POOLS,   DEADLOCK,  rank 0 gemm[0] (notify),   rank 0 total[0] (compute)",
    "POOL_WITHOUT_LANE,  LANES,     rank 1 total[0] (compute), ''",
    "POOL_IN_TWO_ROLES,  LANES,     rank 1 total[0] (compute), ''",
    "ONE_SLOT_FOR_TWO,   RACES,     rank 0 send[0] (put),      rank 1 gemm[12] (compute)",
    "NO_ENTERED,         RACES,     rank 0 send[0] (put),      rank 1 gemm[12] (compute)",
    "FLAG_RAISED_TWICE,  SIGNALS,   rank 0 send[0] (put),      rank 1 send[6] (notify)",
    "COUNTER_FROM_TWO_RANKS, SIGNALS, rank 0 gemm[0] (compute), rank 1 gemm[0] (compute)",
    "COUNTER_TOO_LOW,    SIGNALS,   rank 1 total[0] (compute), rank 1 gemm[0] (compute)",
    "COUNTER_TOO_HIGH,   SIGNALS,   rank 1 total[0] (compute), rank 1 gemm[0] (compute)",
    "NEVER_RAISED,       SIGNALS,   rank 1 gemm[12] (compute), ''",
    "TILE_LEFT_OUT,      SUPPLY,    rank 1 total[0] (compute), rank 1 gemm[34] (compute)",
    "TILE_WRITTEN_TWICE, COVERAGE,  rank 1 gemm[12] (compute), rank 1 gemm[13] (compute)",
    "BEYOND_BUFFER,      STRUCTURE, rank 0 send[0] (put),      ''",
    "WRAPPED_64_BIT,     STRUCTURE, rank 0 send[0] (put),      ''",
    "SPLIT_ELEMENT,      STRUCTURE, rank 0 send[0] (put),      ''",
    "DONE_AS_ARRIVAL,    RACES,     rank 0 send[0] (put),      rank 1 gemm[12] (compute)",
    "DEVICE_SCOPE,       STRUCTURE, rank 0 send[6] (notify),   ''",
    "WRITES_INPUT,       STRUCTURE, rank 1 gemm[12] (compute), ''",
    "WRITES_PEER,        STRUCTURE, rank 1 gemm[12] (compute), ''",
    "NEGATIVE_LAG,       STRUCTURE, rank 0 send[0] (put),      ''",
  })
  void seededFaultIsFoundAndItsTasksNamed(Fault fault, Rule rule, String one, String other) {
    // Where all puts are at fault, two ranks: the first readers are then tiles.
    boolean all = fault == Fault.ONE_SLOT_FOR_TWO || fault == Fault.NO_ENTERED;
    Schedule schedule = TestPlanner.gather(1, all ? 2 : 3, fault);
    CheckReport report = ScheduleChecker.check(schedule);
    assertThat(report.findings())
        .as("findings of %s", fault)
        .anySatisfy(finding -> {
          assertThat(finding.rule()).isEqualTo(rule);
          assertThat(finding.message()).contains(one).contains(other);
          List<String> named =
              finding.tasks().stream()
                  .map(task -> schedule.describe(task.rank(), task.task()))
                  .toList();
          assertThat(named).contains(one);
          if (!other.isEmpty()) {
            assertThat(named).contains(other);
          }
        });
    assertThat(report.verdict(rule)).isEqualTo(Claim.Verdict.BROKEN);
    assertThatThrownBy(report::requireProven)
        .isInstanceOf(UsageException.class)
        .hasMessageContaining(report.findings().getFirst().message());
  }

  /** Planners with a fault in them are wrong in all worlds in which the fault has a place. */
  @ParameterizedTest
  @EnumSource(Fault.class)
  void faultsAreFoundAtAnyWorldAndWithPartWaits(Fault fault) {
    for (int world = 2; world <= 6; world++) {
      if (fault == Fault.NOBODY_AWAITS && world > 2) {
        continue; // Rank 1 passes the chunk on, so one of its tasks waits.
      }
      Schedule schedule = new TestPlanner(Topology.of(1, world), 3, 4, true, true, fault).plan();
      assertThat(ScheduleChecker.check(schedule).isProven()).as("world of %d", world).isFalse();
    }
  }

  @Test
  void writeThatNobodyAwaitsIsNotOrderedByTheLaunch() {
    CheckReport report = check(1, 2, Fault.NOBODY_AWAITS);
    assertThat(report.findings())
        .anySatisfy(finding -> {
          assertThat(finding.rule()).isEqualTo(Rule.RACES);
          assertThat(finding.message()).contains("rank 0 send[0] (put)").contains("2 epochs");
        });
  }

  @Test
  void uncoveredOutputSaysHowMuch() {
    CheckReport report = check(1, 3, Fault.TILE_LEFT_OUT);
    assertThat(report.findings())
        .anySatisfy(finding -> {
          assertThat(finding.rule()).isEqualTo(Rule.COVERAGE);
          assertThat(finding.message()).contains("1120 of 1152 bytes of the output c");
        });
  }

  @Test
  void rulesThatBuildOnABrokenOneAreUnknown() {
    CheckReport report = check(1, 3, Fault.CYCLIC_WAIT);
    assertThat(report.verdict(Rule.STRUCTURE)).isEqualTo(Claim.Verdict.PROVEN);
    assertThat(report.verdict(Rule.SIGNALS)).isEqualTo(Claim.Verdict.PROVEN);
    assertThat(report.verdict(Rule.DEADLOCK)).isEqualTo(Claim.Verdict.BROKEN);
    assertThat(report.verdict(Rule.RACES)).isEqualTo(Claim.Verdict.UNKNOWN);
    assertThat(report.claims())
        .extracting(Claim::verdict)
        .contains(Claim.Verdict.ASSUMED, Claim.Verdict.CHECKED_AT_RUN_TIME);
    assertThat(report.assumptions()).hasSize(3);
  }

  @Test
  void findingsAreCapped() {
    Schedule schedule =
        new TestPlanner(Topology.of(1, 4), 8, 8, false, false, Fault.NO_ENTERED).plan();
    assertThat(ScheduleChecker.check(schedule).findings()).hasSize(CheckReport.MAX_FINDINGS);
  }

  /** Puts straight into an output: its one slot is the caller's between launches. */
  private static CheckReport putIntoOutput(boolean laxly, boolean awaited, boolean answered) {
    ScheduleBuilder builder = new ScheduleBuilder("direct", Topology.of(1, 2));
    int in = builder.input("in", DType.F32, new long[] {16, 0});
    int out = builder.output("out", DType.F32, new long[] {0, 16});
    int spare = builder.workspace("spare", DType.F32, 16, 2);
    int flag = builder.flags("arrived", 1, Scope.SYSTEM);
    int answer = builder.flags("answer", 1, Scope.SYSTEM);
    ScheduleBuilder.RankBuilder sender = builder.rank(0);
    int send = sender.pool("send");
    sender.put(sender.region(in, 0, 1, 16, 16), sender.regionOf(1, out, 0, 1, 16, 16), flag);
    sender.awaitEntered(1, laxly ? spare : out);
    int hear = sender.pool("hear");
    if (answered) {
      sender.notifies().await(answer);
    }
    sender.role("communication", false, send, hear);
    ScheduleBuilder.RankBuilder receiver = builder.rank(1);
    int pool = receiver.pool("await");
    if (awaited) {
      receiver.notifies().await(flag).raise(0, answer);
    } else {
      receiver.notifies().raise(0, answer);
    }
    receiver.role("communication", false, pool);
    return ScheduleChecker.check(builder.build());
  }

  /** Within a rank bytes are copied by a kernel; a put is for other ranks. */
  @Test
  void putToTheOwnRankIsRefused() {
    ScheduleBuilder builder = new ScheduleBuilder("own", Topology.of(1, 1));
    int in = builder.input("in", DType.F32, new long[] {16});
    int out = builder.output("out", DType.F32, new long[] {16});
    int flag = builder.flags("arrived", 1, Scope.SYSTEM);
    ScheduleBuilder.RankBuilder rank = builder.rank(0);
    int send = rank.pool("send");
    rank.put(rank.region(in, 0, 1, 16, 16), rank.regionOf(0, out, 0, 1, 16, 16), flag);
    rank.awaitEntered(0, out);
    rank.role("communication", false, send);
    assertThat(ScheduleChecker.check(builder.build()).findings())
        .anySatisfy(finding -> {
          assertThat(finding.rule()).isEqualTo(Rule.STRUCTURE);
          assertThat(finding.message()).contains("rank 0 send[0] (put)").contains("own rank");
        });
  }

  @Test
  void outputBelongsToTheCallerBetweenLaunches() {
    assertThat(putIntoOutput(false, true, false).findings()).isEmpty();
    // The answer orders both puts, but says nothing of the caller, who reads in between.
    assertThat(putIntoOutput(true, true, true).findings())
        .singleElement()
        .satisfies(finding -> {
          assertThat(finding.rule()).isEqualTo(Rule.RACES);
          assertThat(finding.message()).contains("caller").contains("rank 0 send[0] (put)");
        });
  }

  @Test
  void outputMustBeThereWhenTheLaunchEnds() {
    assertThat(putIntoOutput(false, false, false).findings())
        .anySatisfy(finding -> {
          assertThat(finding.rule()).isEqualTo(Rule.COVERAGE);
          assertThat(finding.message()).contains("does not wait");
        });
  }

  /**
   * With two slots a ring needs no wait for {@code entered}: nothing leaves a rank before the data
   * of all others, which they send in their next launch, came in.
   */
  @Test
  void gatherOfTwoSlotsOrdersItself() {
    ScheduleBuilder builder = new ScheduleBuilder("exchange", Topology.of(1, 2));
    int in = builder.input("in", DType.F32, new long[] {16, 16});
    int stage = builder.workspace("stage", DType.F32, 16, 2);
    int out = builder.output("out", DType.F32, new long[] {16, 16});
    int flag = builder.flags("arrived", 1, Scope.SYSTEM);
    int copy = builder.kernel(new org.mkernel.api.schedule.Kernel("test.copy", java.util.Map.of()));
    for (int rank = 0; rank < 2; rank++) {
      ScheduleBuilder.RankBuilder tasks = builder.rank(rank);
      int send = tasks.pool("send");
      tasks.put(
          tasks.region(in, 0, 1, 16, 16), tasks.regionOf(1 - rank, stage, 0, 1, 16, 16), flag);
      int work = tasks.pool("work");
      tasks.compute(copy).await(flag).stream().part(tasks.region(stage, 0, 1, 16, 16));
      tasks.output(tasks.region(out, 0, 1, 16, 16));
      tasks.role("communication", false, send).role("compute", true, work);
    }
    assertThat(ScheduleChecker.check(builder.build()).findings()).isEmpty();
  }

  @Test
  void readyFirstRoleHasNoOrderBetweenPools() {
    for (boolean readyFirst : new boolean[] {false, true}) {
      ScheduleBuilder builder = new ScheduleBuilder("pools", Topology.of(1, 1));
      int flag = builder.flags("flag", 1, Scope.SYSTEM);
      ScheduleBuilder.RankBuilder tasks = builder.rank(0);
      int waits = tasks.pool("waits");
      tasks.notifies().await(flag);
      int raises = tasks.pool("raises");
      tasks.notifies().raise(0, flag);
      if (readyFirst) {
        tasks.readyFirstRole("lane", false, waits, raises);
      } else {
        tasks.role("lane", false, waits, raises);
      }
      CheckReport report = ScheduleChecker.check(builder.build());
      assertThat(report.isProven()).isEqualTo(readyFirst);
      if (!readyFirst) {
        assertThat(report.findings().getFirst().message())
            .contains("rank 0 waits[0] (notify) waits for rank 0 raises[0] (notify)")
            .contains("which is claimed after the first");
      }
    }
  }

  /** Columns of nonsense: whatever a planner writes down, the checker answers. */
  @Test
  void neverThrows() {
    int proven = 0;
    for (int seed = 0; seed < 20_000; seed++) {
      proven += ScheduleChecker.check(nonsense(new Random(seed))).isProven() ? 1 : 0;
    }
    assertThat(proven).isLessThan(1000);
  }

  private static int any(Random random, int bound) {
    int[] odd = {-1, bound, Integer.MAX_VALUE, Integer.MIN_VALUE};
    return random.nextInt(40) == 0 ? odd[random.nextInt(4)] : random.nextInt(Math.max(1, bound));
  }

  private static long size(Random random) {
    long[] odd = {-1, 0, 6, 1L << 32, 1L << 62, Long.MAX_VALUE, Long.MIN_VALUE};
    return random.nextInt(40) == 0 ? odd[random.nextInt(7)] : 4L * random.nextInt(4);
  }

  private static Schedule nonsense(Random random) {
    int world = 1 + random.nextInt(3);
    ScheduleBuilder builder = new ScheduleBuilder("nonsense", Topology.of(world, 1));
    long[] bytes = new long[world];
    Arrays.fill(bytes, 64);
    builder.input("in", DType.F32, bytes);
    builder.output("out", DType.F32, bytes);
    builder.workspace("stage", DType.F32, 64, 1 + random.nextInt(3));
    builder.flags("flag", 4, Scope.SYSTEM);
    builder.counters("counter", 2, Scope.DEVICE);
    int kernel =
        builder.kernel(new org.mkernel.api.schedule.Kernel("test.any", java.util.Map.of()));
    int signals = 6 + world;
    for (int rank = 0; rank < world; rank++) {
      ScheduleBuilder.RankBuilder tasks = builder.rank(rank);
      int pool = tasks.pool("pool");
      for (int task = random.nextInt(4); task > 0; task--) {
        int[] region = new int[2];
        for (int i = 0; i < 2; i++) {
          region[i] =
              tasks.regionOf(
                  random.nextInt(4) == 0 ? any(random, world) : rank,
                  any(random, 3),
                  size(random),
                  1 + size(random) / 4,
                  size(random),
                  size(random) + 8);
        }
        switch (random.nextInt(4)) {
          case 0 -> tasks.put(region[0], region[1], any(random, signals));
          case 1 -> tasks.reduce();
          case 2 -> tasks.notifies();
          default -> tasks.compute(kernel);
        }
        while (random.nextInt(3) == 0) {
          tasks.stream().part(any(random, 2), any(random, signals), 1, any(random, 2));
        }
        while (random.nextInt(3) == 0) {
          tasks.output(any(random, 2));
        }
        while (random.nextBoolean()) {
          tasks.raise(random.nextBoolean() ? rank : any(random, world), any(random, signals));
        }
        while (random.nextBoolean()) {
          tasks.await(any(random, signals), 1, any(random, 3));
        }
      }
      tasks.role("lane", false, random.nextInt(20) == 0 ? any(random, 2) : pool);
    }
    return builder.build();
  }
}
