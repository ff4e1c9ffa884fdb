package org.mkernel.check;

import java.util.Arrays;
import org.mkernel.api.schedule.BufferSpec;
import org.mkernel.api.schedule.RankSchedule;
import org.mkernel.api.schedule.Role;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.schedule.SignalSpec;
import org.mkernel.api.schedule.TaskKind;

/** Indices, regions, pools and roles, and what each kind of task may touch. */
final class StructureCheck {
  private final Schedule schedule;
  private final Findings findings;
  private final int ranks;
  private final boolean[] flag;
  private final boolean[] system;

  StructureCheck(Schedule schedule, Findings findings) {
    this.schedule = schedule;
    this.findings = findings;
    this.ranks = schedule.topology().size();
    this.flag = new boolean[schedule.signalCount()];
    this.system = new boolean[schedule.signalCount()];
    for (SignalSpec spec : schedule.signals()) {
      int end = spec.first() + spec.count();
      Arrays.fill(flag, spec.first(), end, spec.kind() == SignalSpec.Kind.FLAG);
      Arrays.fill(system, spec.first(), end, spec.scope() == SignalSpec.Scope.SYSTEM);
    }
  }

  void run() {
    for (int rank = 0; rank < ranks; rank++) {
      RankSchedule tasks = schedule.rank(rank);
      lanes(tasks);
      for (int task = 0; task < tasks.tasks() && !findings.isFull(); task++) {
        task(tasks, task);
      }
    }
  }

  private void lanes(RankSchedule tasks) {
    int[] drained = new int[tasks.pools()];
    for (Role role : tasks.roles()) {
      for (int pool : role.pools()) {
        if (pool < 0 || pool >= drained.length) {
          findings.add(
              Finding.Rule.LANES,
              "role %s of rank %d drains pool %d; there are %d"
                  .formatted(role.name(), tasks.rank(), pool, drained.length));
        } else {
          drained[pool]++;
        }
      }
    }
    for (int pool = 0; pool < drained.length; pool++) {
      int first = tasks.poolFirst(pool);
      boolean empty = first == tasks.poolFirst(pool + 1);
      if (drained[pool] > 1 || (drained[pool] == 0 && !empty)) {
        String message =
            "pool %s of rank %d is drained by %d roles; it must be one"
                .formatted(tasks.poolName(pool), tasks.rank(), drained[pool]);
        if (empty) {
          findings.add(Finding.Rule.LANES, message);
        } else {
          findings.add(
              Finding.Rule.LANES,
              message + "; its first task is " + schedule.describe(tasks.rank(), first),
              new Finding.TaskId(tasks.rank(), first));
        }
      }
    }
  }

  private void bad(RankSchedule tasks, int task, String message) {
    findings.of(Finding.Rule.STRUCTURE, tasks.rank(), task, message);
  }

  private void task(RankSchedule tasks, int task) {
    for (int wait = tasks.firstWait(task); wait < tasks.firstWait(task + 1); wait++) {
      signal(tasks, task, tasks.waitSignal(wait));
      if (tasks.waitCount(wait) < 1 || tasks.waitLag(wait) < 0) {
        bad(tasks, task, "has a wait with a count below 1 or a lag below 0");
      }
    }
    TaskKind kind = tasks.kind(task);
    int streams = tasks.firstStream(task + 1) - tasks.firstStream(task);
    int outputs = tasks.firstOutput(task + 1) - tasks.firstOutput(task);
    for (int stream = tasks.firstStream(task); stream < tasks.firstStream(task + 1); stream++) {
      for (int part = tasks.firstPart(stream); part < tasks.firstPart(stream + 1); part++) {
        if (tasks.partSignal(part) != RankSchedule.NO_SIGNAL) {
          signal(tasks, task, tasks.partSignal(part));
          if (tasks.partCount(part) < 1 || tasks.partLag(part) < 0) {
            bad(tasks, task, "has a part with a count below 1 or a lag below 0");
          }
        }
        region(tasks, task, tasks.partRegion(part), false);
      }
    }
    for (int o = tasks.firstOutput(task); o < tasks.firstOutput(task + 1); o++) {
      region(tasks, task, tasks.output(o), true);
    }
    for (int raise = tasks.firstRaise(task); raise < tasks.firstRaise(task + 1); raise++) {
      raise(tasks, task, kind, raise);
    }
    boolean shape =
        switch (kind) {
          case COMPUTE -> tasks.kernel(task) >= 0 && tasks.kernel(task) < schedule.kernels().size();
          case PUT -> streams == 1 && outputs == 1;
          case REDUCE -> streams == 1 && outputs == 1;
          case NOTIFY -> streams == 0 && outputs == 0;
        };
    if (!shape) {
      bad(
          tasks,
          task,
          "has %d streams, %d outputs and kernel %d, which its kind does not allow"
              .formatted(streams, outputs, tasks.kernel(task)));
    } else if (kind == TaskKind.PUT) {
      put(tasks, task);
    }
  }

  private boolean signal(RankSchedule tasks, int task, int signal) {
    if (!isKnown(signal)) {
      bad(tasks, task, "names signal %d; there are %d".formatted(signal, schedule.signalCount()));
    }
    return isKnown(signal);
  }

  private boolean isKnown(int signal) {
    return signal >= 0 && signal < schedule.signalCount();
  }

  private void raise(RankSchedule tasks, int task, TaskKind kind, int raise) {
    int owner = tasks.raiseRank(raise);
    int signal = tasks.raiseSignal(raise);
    if (owner < 0 || owner >= ranks) {
      bad(tasks, task, "raises a signal of rank %d; there are %d".formatted(owner, ranks));
      return;
    }
    if (!signal(tasks, task, signal) || owner == tasks.rank()) {
      return;
    }
    if (!system[signal]) {
      bad(
          tasks,
          task,
          "raises %s of rank %d, which is declared for one device only"
              .formatted(schedule.signalName(signal), owner));
    }
    if (!schedule.topology().sameNode(owner, tasks.rank())) {
      boolean first = raise == tasks.firstRaise(task);
      if (!first || !flag[signal] || (kind != TaskKind.PUT && kind != TaskKind.NOTIFY)) {
        bad(
            tasks,
            task,
            "raises %s of rank %d on another node: only the first raise of a put or notify can, and"
                    .formatted(schedule.signalName(signal), owner)
                + " only a flag");
      }
      if (kind == TaskKind.NOTIFY && tasks.firstRaise(task + 1) - raise > 1) {
        bad(tasks, task, "raises more than the flag that goes to another node");
      }
    }
  }

  private void region(RankSchedule tasks, int task, int region, boolean written) {
    if (region < 0 || region >= tasks.regions()) {
      bad(tasks, task, "names region %d; there are %d".formatted(region, tasks.regions()));
      return;
    }
    int owner = tasks.regionRank(region);
    int buffer = tasks.regionBuffer(region);
    if (owner < 0 || owner >= ranks || buffer < 0 || buffer >= schedule.buffers().size()) {
      bad(tasks, task, "names buffer %d of rank %d".formatted(buffer, owner));
      return;
    }
    BufferSpec spec = schedule.buffers().get(buffer);
    long rows = tasks.regionRows(region);
    long rowBytes = tasks.regionRowBytes(region);
    long pitch = tasks.regionPitch(region);
    long offset = tasks.regionOffset(region);
    if (rows < 1 || rowBytes < 1 || offset < 0 || (rows > 1 && pitch < rowBytes)) {
      bad(tasks, task, "names an impossible region: " + words(tasks, region));
      return;
    }
    // What is left of the buffer after the last row must hold the rows before it; nothing
    // overflows.
    long room = spec.bytes(owner) - rowBytes - offset;
    if (room < 0 || offset > spec.bytes(owner) || (rows > 1 && room / pitch < rows - 1)) {
      bad(tasks, task, "names a region outside its buffer: " + words(tasks, region));
    }
    int element = spec.dtype().bytes();
    if (offset % element != 0 || rowBytes % element != 0 || (rows > 1 && pitch % element != 0)) {
      bad(tasks, task, "names a region that splits elements: " + words(tasks, region));
    }
    if (written && spec.use() == BufferSpec.Use.INPUT) {
      bad(tasks, task, "writes the input " + spec.name());
    }
    boolean putTarget = written && tasks.kind(task) == TaskKind.PUT;
    if (putTarget == (owner == tasks.rank())) {
      bad(
          tasks,
          task,
          putTarget
              ? "puts to its own rank"
              : "touches %s of rank %d; only puts touch other ranks".formatted(spec.name(), owner));
    }
  }

  private String words(RankSchedule tasks, int region) {
    int owner = tasks.regionRank(region);
    BufferSpec spec = schedule.buffers().get(tasks.regionBuffer(region));
    return "%d rows of %d bytes, pitch %d, at %d of %s, which has %d bytes on rank %d"
        .formatted(
            tasks.regionRows(region),
            tasks.regionRowBytes(region),
            tasks.regionPitch(region),
            tasks.regionOffset(region),
            spec.name(),
            spec.bytes(owner),
            owner);
  }

  private void put(RankSchedule tasks, int task) {
    int stream = tasks.firstStream(task);
    if (tasks.firstPart(stream + 1) - tasks.firstPart(stream) != 1) {
      bad(tasks, task, "must have one source");
      return;
    }
    int source = tasks.partRegion(tasks.firstPart(stream));
    int target = tasks.output(tasks.firstOutput(task));
    if (source < 0 || source >= tasks.regions() || target < 0 || target >= tasks.regions()) {
      return;
    }
    if (tasks.regionRows(source) != tasks.regionRows(target)
        || tasks.regionRowBytes(source) != tasks.regionRowBytes(target)) {
      bad(
          tasks,
          task,
          "puts %d x %d bytes into %d x %d bytes"
              .formatted(
                  tasks.regionRows(source),
                  tasks.regionRowBytes(source),
                  tasks.regionRows(target),
                  tasks.regionRowBytes(target)));
    }
    int raise = tasks.firstRaise(task);
    int raises = tasks.firstRaise(task + 1) - raise;
    if (raises == 0 || tasks.raiseRank(raise) != tasks.regionRank(target)) {
      bad(tasks, task, "must first raise a flag of the rank that it writes to");
    } else if (isKnown(tasks.raiseSignal(raise)) && !flag[tasks.raiseSignal(raise)]) {
      bad(tasks, task, "announces its arrival by a counter; it must be a flag");
    }
    if (raises > 2 || (raises == 2 && tasks.raiseRank(raise + 1) != tasks.rank())) {
      bad(tasks, task, "may raise, beside its flag, only done on its own rank");
    }
  }
}
