package org.mkernel.testsuite;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.management.ManagementFactory;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.mkernel.api.Config;
import org.mkernel.api.DType;
import org.mkernel.api.MKernel;
import org.mkernel.api.Operation;
import org.mkernel.api.World;
import org.mkernel.api.spi.Problem;

/** A launch allocates nothing. */
final class AllocationTest {
  private static final int WARM_UP = 2000;
  private static final int LAUNCHES = 1000;

  static List<String> operators() {
    return Problems.names();
  }

  @ParameterizedTest
  @MethodSource("operators")
  void launchesAllocateNothing(String operator) {
    Problem problem = Problems.of(operator, 2, 1, DType.F32, 16, 4, 4);
    com.sun.management.ThreadMXBean threads =
        (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
    try (MKernel mkernel = MKernel.open(Config.defaults());
        World world = mkernel.local(2, 1)) {
      world.eachLocalRank(rank -> {
        try (Operation operation = rank.prepare(Problems.collective(rank, problem))) {
          for (int i = 0; i < WARM_UP; i++) {
            operation.await(operation.launch(), TimeUnit.SECONDS.toNanos(20));
          }
          long before = threads.getCurrentThreadAllocatedBytes();
          for (int i = 0; i < LAUNCHES; i++) {
            operation.await(operation.launch(), TimeUnit.SECONDS.toNanos(20));
          }
          long bytes = threads.getCurrentThreadAllocatedBytes() - before;
          // Less than a byte each: nothing per launch, whatever the JIT did once.
          assertThat(bytes).isLessThan(LAUNCHES);
        }
      });
    }
  }
}
