package org.mkernel.cli;

import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.mkernel.api.schedule.RankSchedule;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.check.PathStep;
import org.mkernel.check.Simulation;

/** What a simulation gave, in words or as JSON. */
final class SimulationReport {
  /** Of a path that is longer, the middle is left out. */
  private static final int MAX_LINES = 24;

  private final Simulation simulation;
  private final Schedule schedule;

  SimulationReport(Simulation simulation) {
    this.simulation = simulation;
    this.schedule = simulation.schedule();
  }

  /** Steps of one pool that follow each other for the same reason. */
  private record Leg(
      int rank, String pool, int tasks, double fromNanos, double toNanos, PathStep.Reason reason) {
    Leg plus(Leg next) {
      return new Leg(rank, pool, tasks + next.tasks, fromNanos, next.toNanos, reason);
    }

    boolean goesOnWith(Leg next) {
      return rank == next.rank && pool.equals(next.pool) && next.reason == PathStep.Reason.LANE;
    }
  }

  private List<Leg> legs() {
    List<Leg> legs = new ArrayList<>();
    for (PathStep step : simulation.criticalPath(1)) {
      RankSchedule tasks = schedule.rank(step.rank());
      Leg next =
          new Leg(
              step.rank(),
              tasks.poolName(tasks.poolOf(step.task())),
              1,
              step.fromNanos(),
              step.toNanos(),
              step.reason());
      if (!legs.isEmpty() && legs.getLast().goesOnWith(next)) {
        legs.add(legs.removeLast().plus(next));
      } else {
        legs.add(next);
      }
    }
    return legs;
  }

  void printTo(PrintWriter out) {
    out.printf("on machine %s:%n", simulation.machine().name());
    if (!simulation.isComplete()) {
      out.printf("it cannot end: %d tasks are blocked%n", simulation.blocked().size());
      simulation.blocked().stream()
          .limit(MAX_LINES)
          .forEach(blocked -> out.printf("blocked %s%n", simulation.describe(blocked)));
      return;
    }
    Simulation.Bound bound = simulation.bound();
    out.printf(
        "first launch %s, then %s each; bound %s, by %s%n",
        time(simulation.firstNanos()),
        time(simulation.steadyNanos()),
        time(bound.nanos()),
        bound.reason());
    double all = simulation.endNanos(simulation.epochs());
    for (Simulation.RoleUse role : simulation.roles()) {
      out.printf(
          Locale.ROOT,
          "role    %-14s %d lanes work %.1f %% and wait for signals %.1f %% of the time%n",
          role.name(),
          role.lanes(),
          100 * role.workNanos() / (role.lanes() * all),
          100 * role.waitNanos() / (role.lanes() * all));
    }
    for (Simulation.LinkUse link : simulation.links()) {
      out.printf(Locale.ROOT, "busy    %-14s %.1f %%%n", link.name(), 100 * link.share());
    }
    List<Leg> legs = legs();
    for (int i = 0; i < legs.size(); i++) {
      if (legs.size() > MAX_LINES && i == MAX_LINES / 2) {
        int left = legs.size() - MAX_LINES;
        out.printf("path    … %d more …%n", left);
        i += left;
      }
      Leg leg = legs.get(i);
      out.printf(
          "path    %s to %s: rank %d %s, %d %s, after %s%n",
          time(leg.fromNanos()),
          time(leg.toNanos()),
          leg.rank(),
          leg.pool(),
          leg.tasks(),
          leg.tasks() == 1 ? "task" : "tasks",
          leg.reason().words());
    }
  }

  JsonText json(double planMillis) {
    return new JsonText()
        .object(json -> {
          json.put("schema", 1);
          json.put("operator", schedule.name());
          json.put("world", schedule.topology().size());
          json.put("nodes", schedule.topology().nodes());
          json.put("tasks", schedule.tasks());
          json.put("digest", schedule.digest());
          json.putNumber("planMillis", planMillis);
          json.put("machine", simulation.machine().name());
          json.put("complete", simulation.isComplete());
          json.strings("blocked", simulation.blocked().stream().map(simulation::describe).toList());
          json.putNumber("firstMicros", simulation.firstNanos() / 1e3);
          json.putNumber("steadyMicros", simulation.steadyNanos() / 1e3);
          json.putNumber("boundMicros", simulation.bound().nanos() / 1e3);
          json.put("boundBy", simulation.bound().reason());
          json.array(
              "roles",
              simulation.roles(),
              (fields, role) -> {
                fields.put("name", role.name());
                fields.put("lanes", role.lanes());
                fields.putNumber("workMicros", role.workNanos() / 1e3);
                fields.putNumber("waitMicros", role.waitNanos() / 1e3);
              });
          json.array(
              "links",
              simulation.links(),
              (fields, link) -> {
                fields.put("name", link.name());
                fields.putNumber("busyMicros", link.busyNanos() / 1e3);
                fields.putNumber("share", link.share());
              });
          json.array(
              "criticalPath",
              legs(),
              (fields, leg) -> {
                fields.put("rank", leg.rank());
                fields.put("pool", leg.pool());
                fields.put("tasks", leg.tasks());
                fields.putNumber("fromMicros", leg.fromNanos() / 1e3);
                fields.putNumber("toMicros", leg.toNanos() / 1e3);
                fields.put("after", leg.reason().name().toLowerCase(Locale.ROOT));
              });
        });
  }

  private static String time(double nanos) {
    return nanos < 1e6
        ? String.format(Locale.ROOT, "%.1f µs", nanos / 1e3)
        : String.format(Locale.ROOT, "%.3f ms", nanos / 1e6);
  }
}
