package org.mkernel.check;

import org.mkernel.api.schedule.BufferSpec;
import org.mkernel.api.schedule.RankSchedule;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.schedule.TaskKind;

/**
 * Conflicting accesses are ordered: within an epoch one way or the other, and between an epoch and
 * the next that uses the same slot, in the order of epochs. Outputs are covered once.
 */
final class RaceCheck {
  private final Schedule schedule;
  private final SignalTable signals;
  private final Findings findings;
  private final HappensBefore order;

  RaceCheck(Schedule schedule, SignalTable signals, Findings findings) {
    this.schedule = schedule;
    this.signals = signals;
    this.findings = findings;
    int depth = schedule.buffers().stream().mapToInt(BufferSpec::depth).max().orElse(1);
    this.order = new HappensBefore(schedule, signals, depth);
  }

  void run() {
    Accesses[][] all = Accesses.of(schedule, signals);
    for (int rank = 0; rank < all.length; rank++) {
      for (BufferSpec buffer : schedule.buffers()) {
        if (findings.isFull()) {
          return;
        }
        Accesses accesses = all[rank][buffer.index()];
        // Each access also meets itself, one use of the slot later.
        accesses.conflicts((a, b) -> pair(accesses, buffer, a, b));
        for (int access = 0; access < accesses.size(); access++) {
          if (accesses.isWrite(access)) {
            later(accesses, buffer, access, access);
          }
        }
        if (buffer.use() == BufferSpec.Use.OUTPUT) {
          coverage(accesses, buffer, rank);
        }
      }
    }
  }

  private boolean pair(Accesses accesses, BufferSpec buffer, int a, int b) {
    boolean sameTask = accesses.task(a) == accesses.task(b);
    if (accesses.isWrite(a) && accesses.isWrite(b) && buffer.use() == BufferSpec.Use.OUTPUT) {
      report(Finding.Rule.COVERAGE, accesses, buffer, a, b, "write the same bytes");
    } else if (!sameTask && !before(accesses, a, b, 0) && !before(accesses, b, a, 0)) {
      report(Finding.Rule.RACES, accesses, buffer, a, b, "are not ordered within an epoch");
    } else {
      later(accesses, buffer, a, b);
      if (!findings.isFull()) {
        later(accesses, buffer, b, a);
      }
    }
    return !findings.isFull();
  }

  private void later(Accesses accesses, BufferSpec buffer, int a, int b) {
    if (!before(accesses, a, b, buffer.depth())) {
      report(
          Finding.Rule.RACES,
          accesses,
          buffer,
          a,
          b,
          "are not ordered when the second is %d epochs later and uses the same slot"
              .formatted(buffer.depth()));
    }
  }

  private boolean before(Accesses accesses, int a, int b, int distance) {
    return order.holds(
        accesses.task(a), accesses.isWrite(a), accesses.task(b), accesses.part(b), distance);
  }

  private void report(
      Finding.Rule rule, Accesses accesses, BufferSpec buffer, int a, int b, String what) {
    findings.add(
        rule,
        "%s of %s, by %s, and %s of it, by %s, %s"
            .formatted(
                accesses.isWrite(a) ? "a write" : "a read",
                buffer.name(),
                signals.describe(accesses.task(a)),
                accesses.isWrite(b) ? "a write" : "a read",
                signals.describe(accesses.task(b)),
                what),
        signals.id(accesses.task(a)),
        signals.id(accesses.task(b)));
  }

  private void coverage(Accesses accesses, BufferSpec buffer, int rank) {
    // Writes do not overlap and lie inside: then their bytes add up to all of it or leave a gap.
    if (accesses.bytesWritten() != buffer.bytes(rank)) {
      findings.add(
          Finding.Rule.COVERAGE,
          "%d of %d bytes of the output %s are written on rank %d"
              .formatted(accesses.bytesWritten(), buffer.bytes(rank), buffer.name(), rank));
    }
    for (int access = 0; access < accesses.size(); access++) {
      int global = accesses.task(access);
      int writer = signals.rankOf(global);
      RankSchedule tasks = schedule.rank(writer);
      int task = global - signals.taskBase(writer);
      if (accesses.isWrite(access) && tasks.kind(task) == TaskKind.PUT) {
        int flag = signals.copy(rank, tasks.raiseSignal(tasks.firstRaise(task)));
        if (signals.awaitedLag(flag) != 0) {
          findings.of(
              Finding.Rule.COVERAGE,
              writer,
              task,
              "writes the output %s of rank %d, which does not wait for it before its launch ends"
                  .formatted(buffer.name(), rank));
        }
      }
    }
  }
}
