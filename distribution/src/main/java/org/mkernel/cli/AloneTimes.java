package org.mkernel.cli;

import java.util.OptionalLong;
import org.mkernel.api.Config;
import org.mkernel.api.MKernel;
import org.mkernel.api.World;
import org.mkernel.api.spi.Problem;

/**
 * How long the two halves of an operation take without each other: the same tasks on the same
 * lanes, without waiting for what the other half would raise.
 *
 * @param computeNanos the median of the slowest rank's times; none when there is nothing to compute
 * @param communicationNanos the same for what moves; none when nothing moves
 */
record AloneTimes(OptionalLong computeNanos, OptionalLong communicationNanos) {
  /** Nothing was measured. */
  static final AloneTimes NONE = new AloneTimes(OptionalLong.empty(), OptionalLong.empty());

  /** Measures both. A fault that is asked for would strike again, so then there is nothing. */
  static AloneTimes measure(Config config, Problem problem, OperatorRun run) {
    if (config.options().keySet().stream().anyMatch(name -> name.contains("fault"))) {
      return NONE;
    }
    return new AloneTimes(
        nanos(config.option("part", "compute"), problem, run),
        nanos(config.option("part", "communication"), problem, run));
  }

  private static OptionalLong nanos(Config config, Problem problem, OperatorRun run) {
    int nodes = problem.topology().nodes();
    try (MKernel mkernel = MKernel.open(config);
        World world = mkernel.local(nodes, problem.topology().size() / nodes)) {
      OperatorRun.Outcome outcome = run.run(world, false, false, null);
      return outcome.report().tasks() > 0
          ? OptionalLong.of(outcome.launchNanos())
          : OptionalLong.empty();
    }
  }
}
