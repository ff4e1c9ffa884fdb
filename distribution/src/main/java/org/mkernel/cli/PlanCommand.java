package org.mkernel.cli;

import java.io.PrintWriter;
import org.mkernel.api.schedule.BufferSpec;
import org.mkernel.api.schedule.RankSchedule;
import org.mkernel.api.schedule.Role;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.schedule.SignalSpec;
import org.mkernel.api.spi.CollectiveProvider;
import org.mkernel.api.spi.Problem;
import org.mkernel.check.CheckReport;
import org.mkernel.check.ScheduleChecker;
import org.mkernel.check.Simulation;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code mkernel plan OP}: the schedule in words. */
final class PlanCommand extends OperatorCommand {
  @Option(names = "--check", description = "prove the schedule")
  boolean check;

  @Mixin private SimulateOptions simulation = new SimulateOptions();

  @Spec private CommandSpec spec = CommandSpec.create();

  PlanCommand(CollectiveProvider operator) {
    super(operator);
  }

  @Override
  public Integer call() {
    simulation.check();
    Problem problem = problem();
    long start = System.nanoTime();
    Schedule schedule = operator.plan(problem);
    double millis = (System.nanoTime() - start) / 1e6;
    PrintWriter out = spec.commandLine().getOut();
    if (simulation.json) {
      return document(out, schedule, millis);
    }
    out.printf(
        "%s on %s: %d tasks, planned in %.1f ms%n",
        schedule.name(), schedule.topology(), schedule.tasks(), millis);
    out.printf("digest %s%n", schedule.digest());
    for (BufferSpec buffer : schedule.buffers()) {
      out.printf(
          "buffer  %-12s %-9s %s, depth %d, %d bytes on rank 0%n",
          buffer.name(), buffer.use(), buffer.dtype().label(), buffer.depth(), buffer.bytes(0));
    }
    for (SignalSpec signal : schedule.signals()) {
      out.printf(
          "signal  %-12s %d %ss, scope %s%n",
          signal.name(), signal.count(), signal.kind(), signal.scope());
    }
    schedule.kernels().forEach(kernel -> out.printf("kernel  %s%n", kernel));
    for (int rank = 0; rank < schedule.topology().size(); rank++) {
      RankSchedule tasks = schedule.rank(rank);
      for (Role role : tasks.roles()) {
        StringBuilder pools = new StringBuilder();
        for (int pool : role.pools()) {
          pools
              .append(pools.isEmpty() ? "" : ", then ")
              .append(tasks.poolFirst(pool + 1) - tasks.poolFirst(pool))
              .append(' ')
              .append(tasks.poolName(pool));
        }
        out.printf("rank %-3d %-12s %s%n", rank, role.name(), pools);
      }
    }
    int checked = check ? report(out, schedule) : ExitCode.DONE;
    if (!simulation.simulate) {
      return checked;
    }
    Simulation predicted = simulation.run(schedule);
    new SimulationReport(predicted).printTo(out);
    return predicted.isComplete() ? checked : ExitCode.WRONG;
  }

  private int document(PrintWriter out, Schedule schedule, double planMillis) {
    if (check) {
      ScheduleChecker.check(schedule).requireProven();
    }
    Simulation predicted = simulation.run(schedule);
    new SimulationReport(predicted).json(planMillis).printTo(out);
    return predicted.isComplete() ? ExitCode.DONE : ExitCode.WRONG;
  }

  private static int report(PrintWriter out, Schedule schedule) {
    long start = System.nanoTime();
    CheckReport report = ScheduleChecker.check(schedule);
    double millis = (System.nanoTime() - start) / 1e6;
    if (report.isProven()) {
      out.printf("proven in %.1f ms%n", millis);
      report.assumptions().forEach(assumption -> out.printf("assumed: %s%n", assumption));
      out.printf(
          "bytes each launch: %d inside nodes, %d between nodes%n",
          report.intraBytes(), report.interBytes());
      return ExitCode.DONE;
    }
    report.findings().forEach(f -> out.printf("%s: %s%n", f.rule(), f.message()));
    return ExitCode.WRONG;
  }
}
