package org.mkernel.collectives;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import org.mkernel.api.schedule.BufferSpec;
import org.mkernel.api.schedule.Kernel;
import org.mkernel.api.schedule.RankSchedule;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.schedule.SignalSpec;
import org.mkernel.api.schedule.TaskKind;

/**
 * Runs one epoch of a schedule with one task at a time, in which an element is the term that it was
 * computed by: a task may start once what it waits for was raised, must find every element that it
 * reads, and none of those that it writes. Terms are equal only if they were made of equal elements
 * in equal order, as sums in fp32 are.
 */
final class Delivery {
  private static final long UNKNOWN = 0;

  private final Schedule schedule;
  private final long[][][] terms;
  private final int[][] raises;
  private final BitSet[] done;
  private long interNodeBytes;
  private long intraNodeBytes;

  Delivery(Schedule schedule) {
    this.schedule = schedule;
    int ranks = schedule.topology().size();
    terms = new long[ranks][schedule.buffers().size()][];
    raises = new int[ranks][schedule.signalCount()];
    done = new BitSet[ranks];
    for (int rank = 0; rank < ranks; rank++) {
      done[rank] = new BitSet();
      for (BufferSpec buffer : schedule.buffers()) {
        long[] own = new long[Math.toIntExact(buffer.bytes(rank) / buffer.dtype().bytes())];
        for (int i = 0; buffer.use() == BufferSpec.Use.INPUT && i < own.length; i++) {
          own[i] = input(rank, buffer.name(), i);
        }
        terms[rank][buffer.index()] = own;
      }
    }
  }

  /** The term of an element of an input. */
  static long input(int rank, String buffer, long element) {
    return list(rank, buffer.hashCode(), element);
  }

  /** The term of a sum in the order given. */
  static long sum(List<Long> parts) {
    return parts.size() == 1
        ? parts.getFirst()
        : list(parts.stream().mapToLong(Long::longValue).toArray());
  }

  /** The term of a product of a row and a column. */
  static long product(long row, long column) {
    return list(row, column, 1);
  }

  /** The term of several elements in order. */
  static long list(long... elements) {
    long hash = elements.length + 1L;
    for (long element : elements) {
      hash = (hash ^ element) * 0xbf58476d1ce4e5b9L;
      hash = (hash ^ (hash >>> 29)) * 0x94d049bb133111ebL;
      hash ^= hash >>> 32;
    }
    return hash == UNKNOWN ? 1 : hash;
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
      int signal = tasks.waitSignal(wait);
      if (tasks.waitLag(wait) == 0 && raises[tasks.rank()][signal] < tasks.waitCount(wait)) {
        return false;
      }
    }
    return true;
  }

  private void perform(RankSchedule tasks, int task) {
    String name = schedule.describe(tasks.rank(), task);
    List<List<long[][]>> streams = new ArrayList<>();
    for (int stream = tasks.firstStream(task); stream < tasks.firstStream(task + 1); stream++) {
      List<long[][]> parts = new ArrayList<>();
      for (int part = tasks.firstPart(stream); part < tasks.firstPart(stream + 1); part++) {
        parts.add(read(tasks, tasks.partRegion(part), name));
      }
      streams.add(parts);
    }
    if (tasks.kind(task) != TaskKind.NOTIFY) {
      assertThat(tasks.firstOutput(task + 1) - tasks.firstOutput(task)).as(name).isEqualTo(1);
      int output = tasks.output(tasks.firstOutput(task));
      write(tasks, output, result(tasks, task, streams), name);
    }
    if (tasks.kind(task) == TaskKind.PUT) {
      put(tasks, task, name);
    }
    for (int raise = tasks.firstRaise(task); raise < tasks.firstRaise(task + 1); raise++) {
      raise(tasks.raiseRank(raise), tasks.raiseSignal(raise), name);
    }
  }

  private void raise(int rank, int signal, String name) {
    if (++raises[rank][signal] > 1) {
      assertThat(schedule.signal(signal).kind()).as(name).isEqualTo(SignalSpec.Kind.COUNTER);
    }
  }

  private void put(RankSchedule tasks, int task, String name) {
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
      // Where rails wrap around they do so on the side of the smaller node.
      assertThat(isOnRail(tasks.rank(), peer) || isOnRail(peer, tasks.rank())).as(name).isTrue();
    }
  }

  private boolean isOnRail(int rank, int peer) {
    return schedule.topology().railPeer(rank, schedule.topology().node(peer)) == peer;
  }

  private long[][] result(RankSchedule tasks, int task, List<List<long[][]>> streams) {
    long[][] first = streams.getFirst().getFirst();
    switch (tasks.kind(task)) {
      case PUT -> {
        return first;
      }
      case REDUCE -> {
        return sums(streams.getFirst(), null);
      }
      default -> {}
    }
    Kernel kernel = schedule.kernels().get(tasks.kernel(task));
    boolean biased = kernel.attribute(Kernel.BIAS, "false").equals("true");
    long[] bias = biased ? streams.getLast().getFirst()[0] : null;
    return switch (kernel.kind()) {
      case Kernel.COPY -> first;
      case Kernel.REDUCE -> sums(streams.getFirst(), bias);
      case Kernel.GEMM ->
          products(
              first,
              streams.get(1).getFirst(),
              kernel.attribute(Kernel.TRANSPOSE_B, "false").equals("true"),
              bias);
      default -> throw new AssertionError("what does " + kernel + " compute?");
    };
  }

  private static long[][] sums(List<long[][]> parts, long[] bias) {
    long[][] sums = new long[parts.getFirst().length][parts.getFirst()[0].length];
    for (int row = 0; row < sums.length; row++) {
      for (int column = 0; column < sums[row].length; column++) {
        List<Long> elements = new ArrayList<>();
        for (long[][] part : parts) {
          elements.add(part[row][column]);
        }
        long sum = sum(elements);
        sums[row][column] = bias == null ? sum : sum(List.of(sum, bias[column]));
      }
    }
    return sums;
  }

  private static long[][] products(long[][] left, long[][] right, boolean transposed, long[] bias) {
    int columns = transposed ? right.length : right[0].length;
    int depth = transposed ? right[0].length : right.length;
    long[] ofColumn = new long[columns];
    for (int column = 0; column < columns; column++) {
      long[] elements = new long[depth];
      for (int i = 0; i < depth; i++) {
        elements[i] = transposed ? right[column][i] : right[i][column];
      }
      ofColumn[column] = list(elements);
    }
    long[][] products = new long[left.length][columns];
    for (int row = 0; row < left.length; row++) {
      long ofRow = list(left[row]);
      for (int column = 0; column < columns; column++) {
        long product = product(ofRow, ofColumn[column]);
        products[row][column] = bias == null ? product : sum(List.of(product, bias[column]));
      }
    }
    return products;
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

  private interface Element {
    void visit(int row, int column, int index);
  }

  private void each(RankSchedule tasks, int region, Element visitor) {
    int bytes = schedule.buffers().get(tasks.regionBuffer(region)).dtype().bytes();
    for (int row = 0; row < tasks.regionRows(region); row++) {
      long start = tasks.regionOffset(region) + row * tasks.regionPitch(region);
      for (int column = 0; column < tasks.regionRowBytes(region) / bytes; column++) {
        visitor.visit(row, column, Math.toIntExact(start / bytes + column));
      }
    }
  }

  private long[][] read(RankSchedule tasks, int region, String name) {
    assertThat(tasks.regionRank(region)).as(name).isEqualTo(tasks.rank());
    int bytes = schedule.buffers().get(tasks.regionBuffer(region)).dtype().bytes();
    long[] buffer = terms[tasks.rank()][tasks.regionBuffer(region)];
    long[][] read =
        new long[(int) tasks.regionRows(region)][(int) tasks.regionRowBytes(region) / bytes];
    each(
        tasks,
        region,
        (row, column, index) -> {
          if (buffer[index] == UNKNOWN) {
            throw new AssertionError(name + " reads what is not there");
          }
          read[row][column] = buffer[index];
        });
    return read;
  }

  private void write(RankSchedule tasks, int region, long[][] values, String name) {
    assertThat(tasks.regionRows(region)).as(name).isEqualTo(values.length);
    long[] buffer = terms[tasks.regionRank(region)][tasks.regionBuffer(region)];
    each(
        tasks,
        region,
        (row, column, index) -> {
          if (buffer[index] != UNKNOWN) {
            throw new AssertionError(name + " writes again");
          }
          buffer[index] = values[row][column];
        });
  }

  /** The terms of a buffer of a rank, 0 where it was not written. */
  long[] terms(int rank, BufferSpec buffer) {
    return terms[rank][buffer.index()].clone();
  }

  long interNodeBytes() {
    return interNodeBytes;
  }

  long intraNodeBytes() {
    return intraNodeBytes;
  }
}
