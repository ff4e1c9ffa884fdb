package org.mkernel.testsuite;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.mkernel.api.DType;

/**
 * Every fault of the emulated NIC with every operator, and random ones: the property {@code
 * fault.scenarios} says how many, {@code fault.seed} the first seed.
 */
final class FaultScenariosTest {
  /** Most scenarios wait for their deadline: several wait together. */
  private static final int TOGETHER = 8;

  private static final long DEADLINE_MILLIS = 250;

  /** Enough also on a machine that has no time for the ranks. */
  private static final long LONGEST_DEADLINE_MILLIS = 16 * DEADLINE_MILLIS;

  /** Threads of the test runner keep buffers. What a world left would be left by every one. */
  private static final long BYTES_OF_OTHERS = 16 << 10;

  @ParameterizedTest
  @EnumSource
  void everyOperatorBlamesWhoFails(FaultScenario.Kind kind) throws Exception {
    // Rank 0 has the root of broadcast, and 2 is on its rail: all operators use this link.
    FaultScenario.Fault fault = new FaultScenario.Fault(kind, 0, 2, 3);
    List<FaultScenario> scenarios =
        Problems.names().stream()
            .map(operator ->
                new FaultScenario(Problems.of(operator, 2, 2, DType.F32, 16, 8, 4), fault, 12, 0))
            .toList();
    int failed = run(scenarios, Problems.names());
    assertThat(failed).isEqualTo(kind == FaultScenario.Kind.SLUGGISH ? 0 : scenarios.size());
  }

  @Test
  void randomFaultsAreFoundAndNothingIsLeft() throws Exception {
    long first = Long.getLong("fault.seed", 1);
    int count = Integer.getInteger("fault.scenarios", 100);
    long[] seeds = LongStream.range(first, first + count).toArray();
    run(
        LongStream.of(seeds).mapToObj(FaultScenario::random).toList(),
        LongStream.of(seeds).mapToObj("-Dfault.scenarios=1 -Dfault.seed=%d"::formatted).toList());
  }

  /** Runs all, and returns how many noticed their fault. */
  private static int run(List<FaultScenario> scenarios, List<String> names) throws Exception {
    // What is allocated once, by whoever is the first, is there from now on.
    scenarios.getFirst().run(DEADLINE_MILLIS);
    long before = FaultScenario.nativeBytes();
    int failed = 0;
    List<String> wrong = new ArrayList<>();
    try (ExecutorService threads = Executors.newFixedThreadPool(TOGETHER)) {
      List<Callable<FaultScenario.Outcome>> calls = new ArrayList<>();
      scenarios.forEach(s -> calls.add(() -> s.run(DEADLINE_MILLIS)));
      List<Future<FaultScenario.Outcome>> outcomes = threads.invokeAll(calls);
      for (int i = 0; i < scenarios.size(); i++) {
        FaultScenario.Outcome outcome = outcomes.get(i).get();
        long deadline = DEADLINE_MILLIS;
        while (outcome.wrong().isPresent() && deadline < LONGEST_DEADLINE_MILLIS) {
          // A rank that got no time looks like one that is lost: what counts is a longer deadline.
          deadline *= 4;
          outcome = scenarios.get(i).run(deadline);
        }
        FaultScenario scenario = scenarios.get(i);
        String name = names.get(i);
        outcome.wrong().ifPresent(w -> wrong.add("%s: %s: %s".formatted(name, scenario, w)));
        failed += outcome.failed() ? 1 : 0;
      }
    }
    assertThat(wrong).isEmpty();
    assertThat(FaultScenario.nativeBytes()).isLessThan(before + BYTES_OF_OTHERS);
    assertThat(Thread.getAllStackTraces().keySet())
        .extracting(Thread::getName)
        .noneMatch(name -> name.startsWith("mkernel-"));
    return failed;
  }
}
