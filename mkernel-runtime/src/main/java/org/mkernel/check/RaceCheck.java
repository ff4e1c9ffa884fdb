package org.mkernel.check;

import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.Set;
import org.mkernel.api.schedule.BufferSpec;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.schedule.TaskKind;

/**
 * Conflicting accesses are ordered: within an epoch one way or the other, and between an epoch and
 * the next that uses the same slot, in the order of epochs; later ones follow by way of the write.
 * Every byte that is read was written before in the epoch. Outputs are covered once, are there when
 * the launch of their owner ends, and are left alone until its next one.
 */
final class RaceCheck {
  private final Schedule schedule;
  private final SignalTable signals;
  private final Findings findings;
  private final HappensBefore order;
  private final int[] position;
  private final Set<String> rewritten = new LinkedHashSet<>();

  /** Tasks whose writes are known to race: one finding says enough of each. */
  private final Set<Integer> racing = new HashSet<>();

  RaceCheck(Schedule schedule, SignalTable signals, int[] position, Findings findings) {
    this.schedule = schedule;
    this.signals = signals;
    this.findings = findings;
    this.position = position;
    int depth = schedule.buffers().stream().mapToInt(BufferSpec::depth).max().orElse(1);
    this.order = new HappensBefore(schedule, signals, position, depth);
  }

  void run() {
    Accesses[][] all = Accesses.of(schedule, signals);
    for (int rank = 0; rank < all.length && !findings.isFull(); rank++) {
      for (BufferSpec buffer : schedule.buffers()) {
        if (buffer.use() != BufferSpec.Use.INPUT) {
          new OneBuffer(all[rank][buffer.index()], buffer, rank).run();
        }
      }
    }
  }

  /** Buffers that are written more than once in an epoch: what is read there is not accounted. */
  Set<String> rewritten() {
    return rewritten;
  }

  private final class OneBuffer {
    private final Accesses accesses;
    private final BufferSpec buffer;
    private final int rank;

    /** By read: bytes that were written before; and one of the writes. */
    private final long[] supplied;

    private final int[] supplier;
    private boolean overwrites;

    OneBuffer(Accesses accesses, BufferSpec buffer, int rank) {
      this.accesses = accesses;
      this.buffer = buffer;
      this.rank = rank;
      this.supplied = new long[accesses.size()];
      this.supplier = new int[accesses.size()];
      Arrays.fill(supplier, -1);
    }

    void run() {
      Sweep.over(accesses, this::pair);
      if (findings.isFull()) {
        return;
      }
      for (int access = 0; access < accesses.size(); access++) {
        if (accesses.isWrite(access)) {
          // A write also meets itself, one use of the slot later.
          later(access, access);
          if (buffer.use() == BufferSpec.Use.OUTPUT && kind(access) == TaskKind.PUT) {
            putOfOutput(access);
          }
        }
      }
      if (overwrites) {
        rewritten.add(buffer.name());
      } else {
        supplies();
        if (buffer.use() == BufferSpec.Use.OUTPUT
            && accesses.bytesWritten() != buffer.bytes(rank)) {
          findings.add(
              Finding.Rule.COVERAGE,
              "%d of %d bytes of the output %s are written on rank %d"
                  .formatted(accesses.bytesWritten(), buffer.bytes(rank), buffer.name(), rank));
        }
      }
    }

    private TaskKind kind(int access) {
      return signals.kind(accesses.task(access));
    }

    private boolean pair(int a, int b, long bytes) {
      boolean writes = accesses.isWrite(a) && accesses.isWrite(b);
      overwrites |= writes;
      if (accesses.task(a) == accesses.task(b)) {
        if (writes) {
          report(doubled(), a, b, "of one task share bytes");
        }
        // A task reads before it writes.
      } else if (writes && buffer.use() == BufferSpec.Use.OUTPUT) {
        report(Finding.Rule.COVERAGE, a, b, "share bytes of an output, which is written once");
      } else {
        boolean inOrder = position[accesses.task(a)] < position[accesses.task(b)];
        ordered(inOrder ? a : b, inOrder ? b : a, bytes);
      }
      return !findings.isFull();
    }

    private Finding.Rule doubled() {
      return buffer.use() == BufferSpec.Use.OUTPUT ? Finding.Rule.COVERAGE : Finding.Rule.RACES;
    }

    /** Only the one that stands first in the order of signals can come before the other. */
    private void ordered(int first, int second, long bytes) {
      int writer = accesses.task(accesses.isWrite(first) ? first : second);
      boolean isKnown = racing.contains(writer);
      boolean isOrdered = !isKnown && before(first, second, 0);
      // A race is said once: as a race, not also as a lack of supply.
      int read = accesses.isWrite(second) ? (isOrdered ? -1 : first) : second;
      if (read >= 0 && !accesses.isWrite(read)) {
        supplied[read] += bytes;
        supplier[read] = read == first ? second : first;
      }
      if (isOrdered) {
        later(first, second);
        later(second, first);
      } else if (!isKnown) {
        racing.add(writer);
        report(Finding.Rule.RACES, first, second, "are not ordered within an epoch");
      }
    }

    private void later(int first, int second) {
      int writer = accesses.task(accesses.isWrite(first) ? first : second);
      if (!racing.contains(writer) && !before(first, second, buffer.depth())) {
        racing.add(writer);
        report(
            Finding.Rule.RACES,
            first,
            second,
            "%d epochs later in the same slot, are not ordered".formatted(buffer.depth()));
      }
    }

    private boolean before(int first, int second, int distance) {
      return order.holds(
          accesses.task(first),
          accesses.isWrite(first),
          accesses.task(second),
          accesses.part(second),
          distance);
    }

    private void report(Finding.Rule rule, int first, int second, String what) {
      findings.add(
          rule,
          "%s of %s on rank %d by %s, and %s of it by %s, %s%s"
              .formatted(
                  accesses.isWrite(first) ? "a write" : "a read",
                  buffer.name(),
                  rank,
                  signals.describe(accesses.task(first)),
                  accesses.isWrite(second) ? "a write" : "a read",
                  signals.describe(accesses.task(second)),
                  what,
                  order.isExhausted() ? " as far as the search went" : ""),
          signals.id(accesses.task(first)),
          signals.id(accesses.task(second)));
    }

    private void supplies() {
      for (int access = 0; access < accesses.size(); access++) {
        if (accesses.isWrite(access) || supplied[access] == accesses.bytes(access)) {
          continue;
        }
        int task = accesses.task(access);
        String message =
            "%s reads %d bytes of %s, of which %d are written before it in the launch"
                .formatted(
                    signals.describe(task),
                    accesses.bytes(access),
                    buffer.name(),
                    supplied[access]);
        if (supplier[access] < 0) {
          findings.add(Finding.Rule.SUPPLY, message, signals.id(task));
        } else {
          int writer = accesses.task(supplier[access]);
          findings.add(
              Finding.Rule.SUPPLY,
              message + ", the last by " + signals.describe(writer),
              signals.id(task),
              signals.id(writer));
        }
      }
    }

    private void putOfOutput(int access) {
      int global = accesses.task(access);
      if (signals.awaitedLag(signals.arrival(global)) != 0) {
        findings.add(
            Finding.Rule.COVERAGE,
            "%s writes the output %s of rank %d, which does not wait for it before its launch ends"
                .formatted(signals.describe(global), buffer.name(), rank),
            signals.id(global));
      }
      if (!order.launchBefore(rank, global, 1)) {
        findings.add(
            Finding.Rule.RACES,
            "%s writes the output %s of rank %d, whose caller may still read the launch before"
                .formatted(signals.describe(global), buffer.name(), rank),
            signals.id(global));
      }
    }
  }
}
