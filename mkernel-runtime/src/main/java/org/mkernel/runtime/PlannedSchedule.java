package org.mkernel.runtime;

import java.util.List;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.spi.CollectiveProvider;
import org.mkernel.api.spi.OperandSpec;
import org.mkernel.api.spi.Problem;
import org.mkernel.check.CheckReport;
import org.mkernel.check.ScheduleChecker;

/**
 * A schedule that was checked.
 *
 * @param problem what was planned
 * @param operands the operands
 * @param schedule the schedule
 * @param report the verdict
 * @param planNanos time to plan
 * @param checkNanos time to check
 */
record PlannedSchedule(
    Problem problem,
    List<OperandSpec> operands,
    Schedule schedule,
    CheckReport report,
    long planNanos,
    long checkNanos) {

  static PlannedSchedule of(CollectiveProvider provider, Problem problem) {
    List<OperandSpec> operands = provider.operands(problem);
    long start = System.nanoTime();
    Schedule schedule = provider.plan(problem);
    long planned = System.nanoTime();
    CheckReport report = ScheduleChecker.check(schedule);
    report.requireProven();
    return new PlannedSchedule(
        problem, operands, schedule, report, planned - start, System.nanoTime() - planned);
  }
}
