package org.mkernel.runtime;

import java.util.Arrays;
import org.mkernel.api.Config;
import org.mkernel.api.UsageException;
import org.mkernel.api.schedule.BufferSpec;
import org.mkernel.api.schedule.RankSchedule;
import org.mkernel.api.schedule.Role;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.schedule.ScheduleBuilder;
import org.mkernel.api.schedule.SignalSpec;

/**
 * What is left of a schedule when only the roles that compute run, or only the others: to measure
 * how long each takes alone. Waits for what the other part raises are dropped, so results are not
 * right. What is left has no more edges than the whole, so it ends as well.
 */
final class SchedulePart {
  /** The option of a world: what it runs of each schedule. */
  static final String OPTION = "part";

  private static final String WHOLE = "whole";
  private static final String COMPUTE = "compute";
  private static final String COMMUNICATION = "communication";

  private final Schedule whole;
  private final boolean compute;
  private final ScheduleBuilder builder;

  /** By rank and signal, whether a task raises it that is left out. */
  private final boolean[][] lost;

  private SchedulePart(Schedule whole, boolean compute) {
    this.whole = whole;
    this.compute = compute;
    this.builder = new ScheduleBuilder(whole.name(), whole.topology());
    this.lost = new boolean[whole.topology().size()][whole.signalCount()];
  }

  /** The part that the options of a world ask for. */
  static PlannedSchedule of(PlannedSchedule planned, Config config) {
    String part = config.option(OPTION).orElse(WHOLE);
    return switch (part) {
      case WHOLE -> planned;
      case COMPUTE, COMMUNICATION ->
          new PlannedSchedule(
              planned.problem(),
              planned.operands(),
              of(planned.schedule(), part.equals(COMPUTE)),
              planned.report(),
              planned.planNanos(),
              planned.checkNanos());
      default ->
          throw new UsageException(
              "option %s is \"%s\"; allowed are %s, %s and %s"
                  .formatted(OPTION, part, WHOLE, COMPUTE, COMMUNICATION));
    };
  }

  /** The roles that compute, or the others. */
  static Schedule of(Schedule whole, boolean compute) {
    return new SchedulePart(whole, compute).build();
  }

  private Schedule build() {
    for (BufferSpec buffer : whole.buffers()) {
      int _ =
          switch (buffer.use()) {
            case INPUT -> builder.input(buffer.name(), buffer.dtype(), buffer.bytes());
            case OUTPUT -> builder.output(buffer.name(), buffer.dtype(), buffer.bytes());
            case WORKSPACE ->
                builder.workspace(buffer.name(), buffer.dtype(), buffer.bytes(0), buffer.depth());
          };
    }
    for (SignalSpec signals : whole.signals()) {
      if (signals.first() == whole.entered()) {
        continue; // The builder has declared these, first.
      }
      int _ =
          signals.kind() == SignalSpec.Kind.FLAG
              ? builder.flags(signals.name(), signals.count(), signals.scope())
              : builder.counters(signals.name(), signals.count(), signals.scope());
    }
    whole.kernels().forEach(builder::kernel);
    for (int rank = 0; rank < lost.length; rank++) {
      findLost(whole.rank(rank));
    }
    for (int rank = 0; rank < lost.length; rank++) {
      copy(whole.rank(rank));
    }
    return builder.build();
  }

  private void findLost(RankSchedule tasks) {
    for (Role role : tasks.roles()) {
      if (role.compute() == compute) {
        continue;
      }
      for (int pool : role.pools()) {
        for (int t = tasks.poolFirst(pool); t < tasks.poolFirst(pool + 1); t++) {
          for (int raise = tasks.firstRaise(t); raise < tasks.firstRaise(t + 1); raise++) {
            lost[tasks.raiseRank(raise)][tasks.raiseSignal(raise)] = true;
          }
        }
      }
    }
  }

  private boolean isEntered(int signal) {
    return signal >= whole.entered() && signal < whole.entered() + lost.length;
  }

  private void copy(RankSchedule tasks) {
    ScheduleBuilder.RankBuilder to = builder.rank(tasks.rank());
    for (Role role : tasks.roles()) {
      if (role.compute() != compute) {
        continue;
      }
      // Without those that raise `entered`: the builder adds what is needed.
      int[] pools = Arrays.stream(role.pools()).filter(pool -> !enters(tasks, pool)).toArray();
      int[] copies = new int[pools.length];
      for (int i = 0; i < pools.length; i++) {
        copies[i] = to.pool(tasks.poolName(pools[i]));
        for (int t = tasks.poolFirst(pools[i]); t < tasks.poolFirst(pools[i] + 1); t++) {
          copy(tasks, t, to);
        }
      }
      if (copies.length > 0 && role.readyFirst()) {
        to.readyFirstRole(role.name(), role.compute(), copies);
      } else if (copies.length > 0) {
        to.role(role.name(), role.compute(), copies);
      }
    }
  }

  private boolean enters(RankSchedule tasks, int pool) {
    int first = tasks.poolFirst(pool);
    return first < tasks.poolFirst(pool + 1)
        && tasks.firstRaise(first) < tasks.firstRaise(first + 1)
        && isEntered(tasks.raiseSignal(tasks.firstRaise(first)));
  }

  private void copy(RankSchedule tasks, int t, ScheduleBuilder.RankBuilder to) {
    int raise = tasks.firstRaise(t);
    switch (tasks.kind(t)) {
      case PUT -> {
        int part = tasks.firstPart(tasks.firstStream(t));
        to.put(
            region(tasks, tasks.partRegion(part), to),
            region(tasks, tasks.output(tasks.firstOutput(t)), to),
            tasks.raiseSignal(raise++));
      }
      case COMPUTE -> {
        to.compute(tasks.kernel(t));
        streams(tasks, t, to);
      }
      case REDUCE -> {
        to.reduce();
        streams(tasks, t, to);
      }
      case NOTIFY -> to.notifies();
    }
    for (int wait = tasks.firstWait(t); wait < tasks.firstWait(t + 1); wait++) {
      int signal = tasks.waitSignal(wait);
      if (isEntered(signal)) {
        to.awaitEntered(signal - whole.entered(), bufferOfDepth(tasks.waitLag(wait) + 1));
      } else if (!lost[tasks.rank()][signal]) {
        to.await(signal, tasks.waitCount(wait), tasks.waitLag(wait));
      }
    }
    for (; raise < tasks.firstRaise(t + 1); raise++) {
      to.raise(tasks.raiseRank(raise), tasks.raiseSignal(raise));
    }
  }

  private void streams(RankSchedule tasks, int t, ScheduleBuilder.RankBuilder to) {
    for (int stream = tasks.firstStream(t); stream < tasks.firstStream(t + 1); stream++) {
      to.stream();
      for (int part = tasks.firstPart(stream); part < tasks.firstPart(stream + 1); part++) {
        int region = region(tasks, tasks.partRegion(part), to);
        int signal = tasks.partSignal(part);
        if (signal == RankSchedule.NO_SIGNAL || lost[tasks.rank()][signal]) {
          to.part(region);
        } else {
          to.part(region, signal, tasks.partCount(part), tasks.partLag(part));
        }
      }
    }
    for (int output = tasks.firstOutput(t); output < tasks.firstOutput(t + 1); output++) {
      to.output(region(tasks, tasks.output(output), to));
    }
  }

  private static int region(RankSchedule tasks, int region, ScheduleBuilder.RankBuilder to) {
    return to.regionOf(
        tasks.regionRank(region),
        tasks.regionBuffer(region),
        tasks.regionOffset(region),
        tasks.regionRows(region),
        tasks.regionRowBytes(region),
        tasks.regionPitch(region));
  }

  private int bufferOfDepth(int depth) {
    for (BufferSpec buffer : whole.buffers()) {
      if (buffer.depth() == depth) {
        return buffer.index();
      }
    }
    throw new IllegalStateException("a wait for a buffer of depth " + depth);
  }
}
