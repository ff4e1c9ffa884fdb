package org.mkernel.testsuite;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.mkernel.api.Config;
import org.mkernel.api.DType;
import org.mkernel.api.UsageException;
import org.mkernel.api.spi.Problem;

/** An operation whose computing, or whose moving of bytes, runs alone: to measure it. */
final class PartsAloneTest {
  private static long tasks(Config config, Problem problem) {
    return Problems.run(config, problem, 3).report().tasks();
  }

  @ParameterizedTest
  @CsvSource({"1,1", "1,4", "2,2", "3,2", "5,1"})
  void endAloneWithTheTasksOfTheWhole(int nodes, int ranks) {
    Problem problem = Problems.gemm(nodes, ranks, DType.F32, 129, 65, 33);
    long whole = tasks(Config.defaults(), problem);
    long compute = tasks(Config.defaults().option("part", "compute"), problem);
    long communication = tasks(Config.defaults().option("part", "communication"), problem);
    assertThat(compute).isPositive();
    assertThat(compute + communication).isEqualTo(whole);
    assertThat(communication > 0).isEqualTo(nodes * ranks > 1);
  }

  @Test
  void anotherPartIsRefusedByName() {
    Problem problem = Problems.gemm(1, 1, DType.F32, 8, 8, 8);
    assertThatThrownBy(() -> tasks(Config.defaults().option("part", "half"), problem))
        .isInstanceOf(UsageException.class)
        .hasMessageContaining("half")
        .hasMessageContaining("whole, compute and communication");
  }
}
