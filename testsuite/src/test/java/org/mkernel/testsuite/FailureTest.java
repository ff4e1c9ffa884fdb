package org.mkernel.testsuite;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.mkernel.api.Config;
import org.mkernel.api.DType;
import org.mkernel.api.MKernel;
import org.mkernel.api.MKernelException;
import org.mkernel.api.Operation;
import org.mkernel.api.PeerLostException;
import org.mkernel.api.World;
import org.mkernel.api.spi.Problem;

/** Ranks that are dead or stalled: the right words within the deadline + 1 s. */
final class FailureTest {
  private static final long DEADLINE_MILLIS = 700;

  private static MKernelException failureOf(String operator, int nodes, int ranks, int absent) {
    Problem problem = Problems.of(operator, nodes, ranks, DType.F32, 8L * nodes * ranks, 4, 4);
    try (MKernel mkernel =
            MKernel.open(
                Config.defaults().option("deadline", Double.toString(DEADLINE_MILLIS / 1e3)));
        World world = mkernel.local(nodes, ranks)) {
      long start = System.nanoTime();
      AtomicLong progress = new AtomicLong();
      MKernelException failure =
          catchThrowableOfType(
              MKernelException.class,
              () ->
                  world.eachLocalRank(rank -> {
                    Operation operation = rank.prepare(Problems.collective(rank, problem));
                    for (int i = 0; i < (rank.index() == absent ? 1 : 20); i++) {
                      progress.accumulateAndGet(System.nanoTime() - start, Math::max);
                      operation.await(operation.launch(), TimeUnit.SECONDS.toNanos(20));
                    }
                  }));
      assertThat(failure).isNotNull();
      assertThat(System.nanoTime() - start - progress.get())
          .isLessThan(TimeUnit.MILLISECONDS.toNanos(DEADLINE_MILLIS + 1000));
      return failure;
    }
  }

  static Stream<Arguments> absentees() {
    return Stream.concat(
        IntStream.range(0, 4).mapToObj(rank -> Arguments.of(Problems.GEMM, rank)),
        Problems.names().stream().map(operator -> Arguments.of(operator, 3)));
  }

  @ParameterizedTest
  @MethodSource("absentees")
  void aRankThatDoesNotLaunchIsBlamed(String operator, int absent) {
    MKernelException failure = failureOf(operator, 2, 2, absent);
    assertThat(failure).isInstanceOf(PeerLostException.class);
    assertThat(failure.failure().peer()).hasValue(absent);
    assertThat(failure.failure().operation()).hasValue(operator);
    assertThat(failure.failure().task()).isPresent();
    assertThat(failure).hasMessageContaining("has launched only epoch 1");
  }
}
