package org.mkernel.collectives;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.BitSet;
import org.mkernel.api.schedule.BufferSpec;
import org.mkernel.api.schedule.RankSchedule;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.schedule.TaskKind;

/**
 * Runs one epoch of a schedule in which bytes are only known or not, with one task at a time: a
 * task may start once what it waits for was raised, and must find every byte that it reads, and
 * none of those that it writes.
 */
final class Delivery {
  private final Schedule schedule;
  private final BitSet[][] known;
  private final BitSet[] raised;
  private final BitSet[] done;
  private long interNodeBytes;
  private long intraNodeBytes;

  Delivery(Schedule schedule) {
    this.schedule = schedule;
    int ranks = schedule.topology().size();
    known = new BitSet[ranks][schedule.buffers().size()];
    raised = new BitSet[ranks];
    done = new BitSet[ranks];
    for (int rank = 0; rank < ranks; rank++) {
      raised[rank] = new BitSet();
      done[rank] = new BitSet();
      for (BufferSpec buffer : schedule.buffers()) {
        BitSet bytes = new BitSet();
        if (buffer.use() == BufferSpec.Use.INPUT) {
          bytes.set(0, Math.toIntExact(buffer.bytes(rank)));
        }
        known[rank][buffer.index()] = bytes;
      }
    }
  }

  /** Runs until nothing is left or nothing can go on. */
  Delivery run() {
    boolean progress = true;
    while (progress) {
      progress = false;
      for (int rank = 0; rank < done.length; rank++) {
        RankSchedule tasks = schedule.rank(rank);
        for (int task = 0; task < tasks.tasks(); task++) {
          if (!done[rank].get(task) && isReady(tasks, task)) {
            perform(tasks, task);
            done[rank].set(task);
            progress = true;
          }
        }
      }
    }
    for (int rank = 0; rank < done.length; rank++) {
      int next = done[rank].nextClearBit(0);
      if (next < schedule.rank(rank).tasks()) {
        throw new AssertionError(schedule.describe(rank, next) + " never starts");
      }
    }
    return this;
  }

  private boolean isReady(RankSchedule tasks, int task) {
    for (int wait = tasks.firstWait(task); wait < tasks.firstWait(task + 1); wait++) {
      if (tasks.waitLag(wait) == 0 && !raised[tasks.rank()].get(tasks.waitSignal(wait))) {
        return false;
      }
    }
    return true;
  }

  private void perform(RankSchedule tasks, int task) {
    String name = schedule.describe(tasks.rank(), task);
    for (int stream = tasks.firstStream(task); stream < tasks.firstStream(task + 1); stream++) {
      for (int part = tasks.firstPart(stream); part < tasks.firstPart(stream + 1); part++) {
        read(tasks, tasks.partRegion(part), name);
      }
    }
    for (int out = tasks.firstOutput(task); out < tasks.firstOutput(task + 1); out++) {
      write(tasks, tasks.output(out), name);
    }
    if (tasks.kind(task) == TaskKind.PUT) {
      int target = tasks.output(tasks.firstOutput(task));
      int source = tasks.partRegion(tasks.firstPart(tasks.firstStream(task)));
      assertThat(tasks.regionBytes(source)).as(name).isEqualTo(tasks.regionBytes(target));
      int peer = tasks.regionRank(target);
      assertThat(peer).as(name).isNotEqualTo(tasks.rank());
      assertEntered(tasks, task, peer, tasks.regionBuffer(target), name);
      if (schedule.topology().sameNode(tasks.rank(), peer)) {
        intraNodeBytes += tasks.regionBytes(target);
      } else {
        interNodeBytes += tasks.regionBytes(target);
        assertThat(peer)
            .as(name)
            .isEqualTo(schedule.topology().railPeer(tasks.rank(), schedule.topology().node(peer)));
      }
    }
    for (int raise = tasks.firstRaise(task); raise < tasks.firstRaise(task + 1); raise++) {
      BitSet signals = raised[tasks.raiseRank(raise)];
      assertThat(signals.get(tasks.raiseSignal(raise))).as(name + " raises twice").isFalse();
      signals.set(tasks.raiseSignal(raise));
    }
  }

  private void assertEntered(RankSchedule tasks, int task, int peer, int buffer, String name) {
    int depth = schedule.buffers().get(buffer).depth();
    for (int wait = tasks.firstWait(task); wait < tasks.firstWait(task + 1); wait++) {
      if (tasks.waitSignal(wait) == schedule.entered() + peer) {
        assertThat(tasks.waitLag(wait)).as(name).isEqualTo(depth - 1);
        return;
      }
    }
    throw new AssertionError(name + " does not wait for rank " + peer + " to enter");
  }

  private void read(RankSchedule tasks, int region, String name) {
    assertThat(tasks.regionRank(region)).as(name).isEqualTo(tasks.rank());
    BitSet bytes = known[tasks.rank()][tasks.regionBuffer(region)];
    for (long row = 0; row < tasks.regionRows(region); row++) {
      int first = Math.toIntExact(tasks.regionOffset(region) + row * tasks.regionPitch(region));
      int end = first + Math.toIntExact(tasks.regionRowBytes(region));
      assertThat(bytes.nextClearBit(first))
          .as(name + " reads what is not there")
          .isGreaterThanOrEqualTo(end);
    }
  }

  private void write(RankSchedule tasks, int region, String name) {
    int owner = tasks.regionRank(region);
    BufferSpec buffer = schedule.buffers().get(tasks.regionBuffer(region));
    BitSet bytes = known[owner][buffer.index()];
    for (long row = 0; row < tasks.regionRows(region); row++) {
      int first = Math.toIntExact(tasks.regionOffset(region) + row * tasks.regionPitch(region));
      int end = first + Math.toIntExact(tasks.regionRowBytes(region));
      int written = bytes.nextSetBit(first);
      assertThat(written < 0 || written >= end).as(name + " writes again").isTrue();
      assertThat((long) end).as(name).isLessThanOrEqualTo(buffer.bytes(owner));
      bytes.set(first, end);
    }
  }

  /** How many bytes of a rank's buffer are known. */
  long known(int rank, BufferSpec buffer) {
    return known[rank][buffer.index()].cardinality();
  }

  long interNodeBytes() {
    return interNodeBytes;
  }

  long intraNodeBytes() {
    return intraNodeBytes;
  }
}
