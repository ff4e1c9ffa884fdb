package org.mkernel.check;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import org.assertj.core.data.Offset;
import org.junit.jupiter.api.Test;
import org.mkernel.api.DType;
import org.mkernel.api.UsageException;
import org.mkernel.api.schedule.Kernel;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.schedule.ScheduleBuilder;
import org.mkernel.api.schedule.ScheduleBuilder.RankBuilder;
import org.mkernel.api.schedule.SignalSpec.Scope;
import org.mkernel.api.schedule.Topology;

/** Times that can be reckoned by hand: one operation, one byte and one nanosecond go together. */
class SimulatorTest {
  private static final Offset<Double> EXACT = within(1e-6);

  /** Operations of a product of 4 × 4 × 4. */
  private static final double GEMM = 128;

  private static final double PUT = 64;
  private static final double LATENCY = 50;

  private static final Machine UNIT =
      new Machine(
          "unit",
          Map.of(Machine.rateKey(Kernel.GEMM, DType.F32), 1e9),
          1e9,
          1e9,
          0,
          0,
          new Machine.Wake(0, 0),
          0,
          new Machine.Lanes(1, 1, Map.of()),
          new Machine.Host(Machine.Sharing.WORLD, 0, 1),
          new Machine.Link(0, 0),
          new Machine.Wire(1e9, 0, 0, LATENCY),
          new Machine.Proxy(0, 0, 0));

  private static Machine processors(int count) {
    return processors(count, 1);
  }

  private static Machine processors(int count, double together) {
    return new Machine(
        "shared",
        UNIT.flopsPerSecond(),
        1e9,
        1e9,
        0,
        0,
        new Machine.Wake(0, 0),
        0,
        UNIT.lanes(),
        new Machine.Host(Machine.Sharing.WORLD, count, together),
        UNIT.mapped(),
        UNIT.wire(),
        UNIT.proxy());
  }

  /** Buffers and signals that the tests share, and tasks of fixed cost. */
  private static final class Plan {
    private final ScheduleBuilder builder;
    private final int a;
    private final int c;
    private final int flags;
    private final int counters;
    private final int gemm;

    Plan(int nodes, int ranksPerNode) {
      builder = new ScheduleBuilder("test", Topology.of(nodes, ranksPerNode));
      long[] sizes = new long[nodes * ranksPerNode];
      java.util.Arrays.fill(sizes, 1 << 16);
      a = builder.workspace("a", DType.F32, 1 << 16, 2);
      c = builder.output("c", DType.F32, sizes);
      flags = builder.flags("flag", 8, Scope.SYSTEM);
      counters = builder.counters("count", 1, Scope.SYSTEM);
      gemm = builder.kernel(new Kernel(Kernel.GEMM, Map.of()));
    }

    RankBuilder rank(int rank) {
      return builder.rank(rank);
    }

    RankBuilder gemm(int rank) {
      RankBuilder r = rank(rank).compute(gemm);
      int region = r.region(a, 0, 4, 16, 16);
      return r.stream().part(region).stream().part(region).output(r.region(c, 0, 4, 16, 16));
    }

    RankBuilder put(int rank, int to, int flag) {
      RankBuilder r = rank(rank);
      return r.put(r.region(a, 0, 4, 16, 16), r.regionOf(to, a, 0, 4, 16, 16), flags + flag);
    }

    Simulation on(Machine machine, int epochs) {
      return Simulator.simulate(builder.build(), machine, epochs);
    }
  }

  private static double[] doneOf(Simulation simulation, int rank, int tasks) {
    double[] done = new double[tasks];
    simulation.forEachTask((r, lane, task, epoch, claimed, ready, end) -> {
      if (r == rank && epoch == 1 && task < tasks) {
        done[task] = end;
      }
    });
    return done;
  }

  @Test
  void oneProductTakesItsOperationsAndTheCostOfATask() {
    Plan plan = new Plan(1, 1);
    int pool = plan.rank(0).pool("gemm");
    plan.gemm(0);
    plan.rank(0).role("compute", true, pool);
    Schedule schedule = plan.builder.build();
    assertThat(Simulator.simulate(schedule, UNIT, 1).firstNanos()).isEqualTo(GEMM, EXACT);
    double slower =
        Simulator.simulate(
                schedule, UNIT.withRate(Machine.rateKey(Kernel.GEMM, DType.F32), 0.5e9), 1)
            .firstNanos();
    assertThat(slower).isEqualTo(2 * GEMM, EXACT);
  }

  @Test
  void aPipelineOverTwoNodesHidesTransfersBehindProducts() {
    Plan plan = new Plan(2, 1);
    int wire = plan.rank(0).pool("wire");
    plan.put(0, 1, 0);
    plan.put(0, 1, 1);
    plan.rank(0).role("communication", false, wire);
    int gemm = plan.rank(1).pool("gemm");
    plan.gemm(1).await(plan.flags);
    plan.gemm(1).await(plan.flags + 1);
    plan.rank(1).role("compute", true, gemm);
    Simulation simulation = plan.on(UNIT, 1);
    // The second put arrives at 2 · 64 + 50, before the first product ends.
    assertThat(doneOf(simulation, 1, 2))
        .containsExactly(new double[] {PUT + LATENCY + GEMM, PUT + LATENCY + 2 * GEMM}, EXACT);
    assertThat(simulation.firstNanos()).isEqualTo(PUT + LATENCY + 2 * GEMM, EXACT);
    assertThat(simulation.criticalPath(1))
        .extracting(PathStep::rank, PathStep::task, PathStep::reason)
        .containsExactly(
            org.assertj.core.groups.Tuple.tuple(0, 0, PathStep.Reason.LAUNCH),
            org.assertj.core.groups.Tuple.tuple(1, 0, PathStep.Reason.SIGNAL),
            org.assertj.core.groups.Tuple.tuple(1, 1, PathStep.Reason.LANE));
  }

  @Test
  void aLaunchEndsAfterItsTransfersAreAcknowledged() {
    Plan plan = new Plan(2, 1);
    int wire = plan.rank(0).pool("wire");
    plan.put(0, 1, 0);
    plan.rank(0).role("communication", false, wire);
    assertThat(plan.on(UNIT, 1).firstNanos()).isEqualTo(PUT + 2 * LATENCY, EXACT);
  }

  @Test
  void aFullAdapterSendsOnePutAfterAnother() {
    Plan plan = new Plan(3, 1);
    int wire = plan.rank(0).pool("wire");
    plan.put(0, 1, 0);
    plan.put(0, 2, 1);
    plan.put(0, 1, 2);
    plan.rank(0).role("communication", false, wire);
    Simulation simulation = plan.on(UNIT, 1);
    assertThat(simulation.firstNanos()).isEqualTo(3 * PUT + 2 * LATENCY, EXACT);
    assertThat(simulation.bound().nanos()).isEqualTo(3 * PUT, EXACT);
    assertThat(simulation.bound().reason()).isEqualTo("wire, sending");
  }

  @Test
  void twoSendersShareTheAdapterOfTheirReceiver() {
    Plan plan = new Plan(3, 1);
    for (int rank = 1; rank < 3; rank++) {
      int wire = plan.rank(rank).pool("wire");
      plan.put(rank, 0, rank);
      plan.rank(rank).role("communication", false, wire);
    }
    Schedule schedule = plan.builder.build();
    double alone = Simulator.simulate(schedule, UNIT, 1).firstNanos();
    Machine narrow =
        new Machine(
            "narrow",
            UNIT.flopsPerSecond(),
            1e9,
            1e9,
            0,
            0,
            UNIT.wake(),
            0,
            UNIT.lanes(),
            UNIT.host(),
            UNIT.mapped(),
            new Machine.Wire(1e9, 1e9, 0, LATENCY),
            UNIT.proxy());
    assertThat(alone).isEqualTo(PUT + 2 * LATENCY, EXACT);
    assertThat(Simulator.simulate(schedule, narrow, 1).firstNanos())
        .isEqualTo(2 * PUT + 2 * LATENCY, EXACT);
  }

  @Test
  void aMappedLinkIsSharedByTheLanesOfItsRank() {
    Plan plan = new Plan(1, 2);
    int local = plan.rank(0).pool("local");
    plan.put(0, 1, 0);
    plan.put(0, 1, 1);
    plan.rank(0).role("communication", false, local);
    Schedule schedule = plan.builder.build();
    Machine wide = UNIT.withLanes("communication", 2);
    assertThat(Simulator.simulate(schedule, wide, 1).firstNanos()).isEqualTo(PUT, EXACT);
    assertThat(
            Simulator.simulate(schedule, wide.withMapped(new Machine.Link(1e9, 0)), 1).firstNanos())
        .isEqualTo(2 * PUT, EXACT);
  }

  private static Simulation late(boolean readyFirst) {
    Plan plan = new Plan(2, 1);
    int wire = plan.rank(0).pool("wire");
    plan.put(0, 1, 0);
    plan.rank(0).role("communication", false, wire);
    int first = plan.rank(1).pool("first");
    plan.gemm(1).await(plan.flags);
    int second = plan.rank(1).pool("second");
    plan.gemm(1);
    if (readyFirst) {
      plan.rank(1).readyFirstRole("compute", true, first, second);
    } else {
      plan.rank(1).role("compute", true, first, second);
    }
    return plan.on(UNIT, 1);
  }

  @Test
  void aReadyFirstLanePassesOverAHeadThatWaits() {
    assertThat(doneOf(late(true), 1, 2)).containsExactly(new double[] {2 * GEMM, GEMM}, EXACT);
    assertThat(doneOf(late(false), 1, 2))
        .containsExactly(new double[] {PUT + LATENCY + GEMM, PUT + LATENCY + 2 * GEMM}, EXACT);
  }

  @Test
  void aCounterIsMetByItsLastAdd() {
    Plan plan = new Plan(1, 1);
    int gemm = plan.rank(0).pool("gemm");
    plan.gemm(0).raise(0, plan.counters);
    plan.gemm(0).raise(0, plan.counters);
    int last = plan.rank(0).pool("last");
    plan.gemm(0).await(plan.counters, 2, 0);
    plan.rank(0).role("compute", true, gemm);
    plan.rank(0).role("end", true, last);
    Simulation simulation = plan.on(UNIT, 3);
    assertThat(simulation.firstNanos()).isEqualTo(3 * GEMM, EXACT);
    assertThat(simulation.steadyNanos()).isEqualTo(3 * GEMM, EXACT);
    assertThat(simulation.roles())
        .extracting(Simulation.RoleUse::name, Simulation.RoleUse::waitNanos)
        .contains(org.assertj.core.groups.Tuple.tuple("end", 3 * 2 * GEMM));
  }

  @Test
  void lanesShareProcessorsWhenTheyAreMore() {
    Plan plan = new Plan(1, 4);
    for (int rank = 0; rank < 4; rank++) {
      int pool = plan.rank(rank).pool("gemm");
      plan.gemm(rank);
      if (rank == 0) {
        plan.gemm(rank);
      }
      plan.rank(rank).role("compute", true, pool);
    }
    Schedule schedule = plan.builder.build();
    assertThat(Simulator.simulate(schedule, UNIT, 1).firstNanos()).isEqualTo(2 * GEMM, EXACT);
    // Four on two processors until all have their first product, then one alone.
    assertThat(Simulator.simulate(schedule, processors(2), 1).firstNanos())
        .isEqualTo(3 * GEMM, EXACT);
    assertThat(Simulator.simulate(schedule, processors(1), 1).firstNanos())
        .isEqualTo(5 * GEMM, EXACT);
    // Half as fast while another runs beside: four products for the time of four, then one alone.
    Simulation slowed = Simulator.simulate(schedule, processors(2, 0.5), 1);
    assertThat(slowed.firstNanos()).isEqualTo(5 * GEMM, EXACT);
    assertThat(slowed.bound().nanos()).isEqualTo(5 * GEMM, EXACT);
  }

  @Test
  void aPartIsReadOnceItIsThere() {
    Plan plan = new Plan(2, 1);
    int wire = plan.rank(0).pool("wire");
    plan.put(0, 1, 0);
    plan.put(0, 1, 1);
    plan.rank(0).role("communication", false, wire);
    int gemm = plan.rank(1).pool("gemm");
    RankBuilder r = plan.rank(1).compute(plan.gemm);
    int region = r.region(plan.a, 0, 4, 16, 16);
    r.stream().part(region).part(region, plan.flags + 1, 1, 0);
    r.stream().part(region).part(region);
    r.output(r.region(plan.c, 0, 4, 16, 16));
    r.role("compute", true, gemm);
    // The first part is done before the second arrives at 178.
    assertThat(plan.on(UNIT, 1).firstNanos()).isEqualTo(2 * PUT + LATENCY + GEMM, EXACT);
  }

  @Test
  void theProxyServesOneCommandAfterAnother() {
    Plan plan = new Plan(2, 1);
    int wire = plan.rank(0).pool("wire");
    plan.put(0, 1, 0);
    plan.put(0, 1, 1);
    plan.rank(0).role("communication", false, wire);
    Machine slow =
        new Machine(
            "slow proxy",
            UNIT.flopsPerSecond(),
            1e9,
            1e9,
            0,
            0,
            UNIT.wake(),
            0,
            UNIT.lanes(),
            UNIT.host(),
            UNIT.mapped(),
            new Machine.Wire(0, 0, 0, 0),
            new Machine.Proxy(1000, 7, 0));
    assertThat(plan.on(slow, 1).firstNanos()).isEqualTo(2007, EXACT);
  }

  @Test
  void aBufferOfTwoSlotsLetsASenderRunOneEpochAhead() {
    Plan plan = new Plan(2, 1);
    int wire = plan.rank(0).pool("wire");
    plan.put(0, 1, 0).awaitEntered(1, plan.a);
    plan.rank(0).role("communication", false, wire);
    int gemm = plan.rank(1).pool("gemm");
    plan.gemm(1).await(plan.flags);
    plan.rank(1).role("compute", true, gemm);
    Simulation simulation = plan.on(UNIT, 5);
    assertThat(simulation.isComplete()).isTrue();
    // A put and its acknowledgement take longer than a product and hide it.
    assertThat(simulation.steadyNanos()).isEqualTo(PUT + 2 * LATENCY, within(1.0));
  }

  @Test
  void whatCannotGoOnIsNamed() {
    for (TestPlanner.Fault fault :
        List.of(TestPlanner.Fault.CYCLIC_WAIT, TestPlanner.Fault.NEVER_RAISED)) {
      Schedule schedule = TestPlanner.gather(2, 2, fault);
      Simulation simulation = Simulator.simulate(schedule, UNIT, 2);
      assertThat(simulation.isComplete()).as(fault.name()).isFalse();
      assertThat(simulation.firstNanos()).isInfinite();
      assertThat(simulation.criticalPath(1)).isEmpty();
      assertThat(simulation.blocked())
          .extracting(simulation::describe)
          .allMatch(words -> words.startsWith("rank "))
          .anyMatch(words -> words.contains(" waits in epoch 1 for "));
    }
  }

  @Test
  void aRateThatIsMissingIsNamed() {
    assertThatThrownBy(() -> Simulator.simulate(TestPlanner.gather(1, 2), Machine.h200(), 1))
        .isInstanceOf(UsageException.class)
        .hasMessageContaining("mkernel.gemm in f32")
        .hasMessageContaining("mkernel.gemm/bf16");
    assertThatThrownBy(() -> Simulator.simulate(TestPlanner.gather(1, 2), UNIT, 0))
        .isInstanceOf(UsageException.class)
        .hasMessageContaining("0 epochs");
    assertThatThrownBy(() -> UNIT.withWire(-1, 0))
        .isInstanceOf(UsageException.class)
        .hasMessageContaining("-1.0");
  }

  @Property(tries = 60)
  void anyWorldEndsNoSoonerThanItsBound(
      @ForAll @IntRange(min = 1, max = 4) int nodes,
      @ForAll @IntRange(min = 1, max = 4) int ranksPerNode,
      @ForAll @IntRange(min = 0, max = 3) int processors,
      @ForAll boolean ring,
      @ForAll boolean partWaits) {
    Schedule schedule =
        new TestPlanner(Topology.of(nodes, ranksPerNode), 3, 4, ring, partWaits).plan();
    Simulation simulation = Simulator.simulate(schedule, processors(processors), 3);
    assertThat(simulation.isComplete()).isTrue();
    assertThat(simulation.blocked()).isEmpty();
    assertThat(simulation.endNanos(3)).isGreaterThanOrEqualTo(3 * simulation.bound().nanos() - 1);
    List<PathStep> path = simulation.criticalPath(1);
    assertThat(path.getLast().toNanos()).isEqualTo(simulation.firstNanos(), EXACT);
    for (int i = 1; i < path.size(); i++) {
      assertThat(path.get(i).fromNanos()).isEqualTo(path.get(i - 1).toNanos(), EXACT);
    }
    List<Double> once = new ArrayList<>();
    List<Double> again = new ArrayList<>();
    simulation.forEachTask((r, lane, t, epoch, claimed, ready, done) -> once.add(done));
    Simulator.simulate(schedule, processors(processors), 3)
        .forEachTask((r, lane, t, epoch, claimed, ready, done) -> again.add(done));
    assertThat(again).isEqualTo(once).hasSize((int) schedule.tasks() * 3);
  }

  /** Lanes take what comes, so that more can be slower; list scheduling bounds by how much. */
  @Property(tries = 60)
  void moreBandwidthOrProcessorsOrSpeedIsNotSlowerBeyondAnomalies(
      @ForAll @IntRange(min = 2, max = 4) int nodes,
      @ForAll @IntRange(min = 1, max = 3) int ranksPerNode,
      @ForAll @IntRange(min = 1, max = 100) int speed,
      @ForAll boolean ring) {
    Schedule schedule = new TestPlanner(Topology.of(nodes, ranksPerNode), 4, 4, ring, false).plan();
    Machine slow = UNIT.withWire(speed * 1e7, LATENCY);
    double before = Simulator.simulate(schedule, slow, 1).firstNanos();
    Machine wider = UNIT.withWire(speed * 2e7, LATENCY);
    Machine faster = slow.withRate(Machine.rateKey(Kernel.GEMM, DType.F32), 2e9);
    for (Machine better : List.of(wider, faster)) {
      assertThat(Simulator.simulate(schedule, better, 1).firstNanos())
          .isLessThanOrEqualTo(1.25 * before);
    }
    assertThat(Simulator.simulate(schedule, processors(4), 1).firstNanos())
        .isLessThanOrEqualTo(1.25 * Simulator.simulate(schedule, processors(2), 1).firstNanos());
  }

  @Test
  void aHundredAndSixtyThousandTasksAreSimulatedInSeconds() {
    Schedule schedule = new TestPlanner(Topology.of(8, 8), 8, 4, true, false).plan();
    assertThat(schedule.tasks()).isGreaterThan(160_000);
    long start = System.nanoTime();
    assertThat(Simulator.simulate(schedule, UNIT, 1).isComplete()).isTrue();
    assertThat((System.nanoTime() - start) / 1e9).isLessThan(30);
  }
}
