package org.mkernel.collectives;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.StringJoiner;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.domains.Domain;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.mkernel.api.DType;
import org.mkernel.api.schedule.BufferSpec;
import org.mkernel.api.schedule.RankSchedule;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.schedule.TaskKind;
import org.mkernel.api.schedule.Topology;
import org.mkernel.api.spi.CollectiveProvider;
import org.mkernel.api.spi.Problem;

/** What all planners promise, for any world, shape and chunking. */
@Domain(Problems.class)
final class ScheduleTest {
  private static Problem gemm(int nodes, int ranks, long m, long n, long k, String... options) {
    Map<String, String> map = new java.util.HashMap<>();
    for (int i = 0; i < options.length; i += 2) {
      map.put(options[i], options[i + 1]);
    }
    return new Problem(
        AllGatherGemm.NAME,
        Topology.of(nodes, ranks),
        DType.BF16,
        Map.of("m", m, "n", n, "k", k),
        map);
  }

  @Property(tries = 600)
  void everyOutputIsWrittenOnceAndIsTheTermOfItsOperator(@ForAll Problem problem) {
    Schedule schedule = Problems.provider(problem).plan(problem);
    Delivery delivery = new Delivery(schedule).run();
    BufferSpec c =
        schedule.buffers().stream()
            .filter(b -> b.use() == BufferSpec.Use.OUTPUT)
            .findFirst()
            .orElseThrow();
    Terms terms = new Terms(problem);
    for (int rank = 0; rank < schedule.topology().size(); rank++) {
      assertThat(delivery.terms(rank, c)).isEqualTo(terms.output(rank));
    }
  }

  @Property(tries = 300)
  void bytesAreThoseOfTheModel(@ForAll Problem problem) {
    CollectiveProvider provider = Problems.provider(problem);
    Delivery delivery = new Delivery(provider.plan(problem)).run();
    assertThat(delivery.interNodeBytes()).isEqualTo(provider.interNodeBytes(problem));
    assertThat(delivery.interNodeBytes()).isEqualTo(Terms.interNodeBytes(problem));
    assertThat(delivery.intraNodeBytes()).isEqualTo(Terms.intraNodeBytes(problem));
  }

  @Property(tries = 50)
  void equalProblemsHaveEqualSchedules(@ForAll Problem problem) {
    CollectiveProvider provider = Problems.provider(problem);
    assertThat(provider.plan(problem).digest()).isEqualTo(provider.plan(problem).digest());
  }

  @Test
  void oneRankNeedsNoOther() {
    Schedule schedule = new AllGatherGemmProvider().plan(gemm(1, 1, 1000, 100, 10));
    assertThat(schedule.buffers()).extracting(BufferSpec::name).containsExactly("a", "b", "c");
    RankSchedule tasks = schedule.rank(0);
    assertThat(tasks.waits()).isZero();
    for (int task = 0; task < tasks.tasks(); task++) {
      assertThat(tasks.kind(task)).isEqualTo(TaskKind.COMPUTE);
    }
  }

  @Test
  void moreRanksThanRows() {
    Problem problem = gemm(3, 2, 2, 5, 4, "bias", "true");
    Schedule schedule = new AllGatherGemmProvider().plan(problem);
    assertThat(new Delivery(schedule).run().interNodeBytes()).isEqualTo(2 * 2 * 4 * 2);
    assertThat(schedule.buffers().getFirst().bytes(5)).isZero();
  }

  @Test
  void rowsOfEveryRankAreExpectedInTheOrderInWhichTheyAreSent() {
    // One chunk each; rank 2 is the first of node 1 of 3.
    Schedule schedule = new AllGatherGemmProvider().plan(gemm(3, 2, 6, 1, 1));
    RankSchedule tasks = schedule.rank(2);
    int pool = tasks.roles().getLast().pools()[0];
    List<String> waits = new ArrayList<>();
    for (int task = tasks.poolFirst(pool); task < tasks.poolFirst(pool + 1); task++) {
      int wait = tasks.firstWait(task);
      boolean waiting = wait < tasks.firstWait(task + 1);
      waits.add(waiting ? schedule.signalName(tasks.waitSignal(wait)) : "here");
    }
    assertThat(waits)
        .containsExactly(
            "here", "arrived[3]", "arrived[0]", "arrived[1]", "arrived[4]", "arrived[5]");
  }

  @ParameterizedTest
  @CsvSource({
    // Ten rows a rank, in chunks of 4, 4 and 2; first the own ones, which are there.
    "3, '3, 3, 3, 1, 3, 1, 3, 1, 2'",
    "4, '4, 4, 2, 4, 4, 2'",
    "7, '7, 3, 4, 6'",
    "8, '8, 2, 8, 2'",
    "100, '10, 10'"
  })
  void tilesOfWhatArrivesAreOfWholeChunksOrPartsOfOne(String tileRows, String expected) {
    Schedule schedule =
        new AllGatherGemmProvider()
            .plan(gemm(1, 2, 20, 3, 1, "chunk-rows", "4", "tile-rows", tileRows));
    RankSchedule tasks = schedule.rank(0);
    int pool = tasks.roles().getLast().pools()[0];
    StringJoiner rows = new StringJoiner(", ");
    for (int task = tasks.poolFirst(pool); task < tasks.poolFirst(pool + 1); task++) {
      rows.add(Long.toString(tasks.regionRows(tasks.output(tasks.firstOutput(task)))));
    }
    assertThat(rows).hasToString(expected);
  }

  @Tag("slow")
  @Test
  void tenThousandTasksOnSixteenRanksArePlannedInFiftyMilliseconds() {
    Problem problem = gemm(2, 8, 32768, 10240, 4096, "tile-rows", "128", "tile-columns", "256");
    long best = Long.MAX_VALUE;
    long tasks = 0;
    for (int run = 0; run < 30; run++) {
      long start = System.nanoTime();
      tasks = new AllGatherGemmProvider().plan(problem).tasks();
      best = Math.min(best, System.nanoTime() - start);
    }
    assertThat(tasks).isGreaterThanOrEqualTo(16 * 10_000);
    assertThat(best).isLessThanOrEqualTo(50_000_000);
  }
}
