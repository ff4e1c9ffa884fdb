package org.mkernel.kernels.cuda;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.mkernel.api.Activation;
import org.mkernel.api.DType;
import org.mkernel.api.Failure;
import org.mkernel.api.UnavailableException;
import org.mkernel.api.UsageException;
import org.mkernel.api.schedule.BufferSpec;
import org.mkernel.api.schedule.Kernel;
import org.mkernel.api.schedule.RankSchedule;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.schedule.SignalSpec;
import org.mkernel.api.spi.ExecutionPlan;

/**
 * Writes the tasks of one rank as the kernel reads them. Operands of products that the copy engine
 * can't read, because rows do not start at multiples of 16 bytes, are packed first: a copy of each
 * such region into scratch memory precedes the first product that uses it, in the same pool.
 */
final class TaskEncoder {
  /** What one CTA computes at once. */
  static final int TILE_ROWS = 128;

  static final int TILE_COLUMNS = 256;

  /** Rows of 128 bytes that one copy moves. */
  private static final int ROW_BYTES = 128;

  private static final int ENGINE_ALIGNMENT = 16;
  private static final int GROUP_ROWS = 64;

  private final ExecutionPlan plan;
  private final Schedule schedule;
  private final RankSchedule tasks;
  private final DType dtype;
  private final TensorMaps maps;
  private final boolean[] counter;
  private final boolean[] system;
  private final Map<Integer, Pack> packs = new HashMap<>();
  private final List<Pack> packList = new ArrayList<>();
  private long scratchBytes;
  private long scratch;

  TaskEncoder(ExecutionPlan plan, DType dtype) {
    this.plan = plan;
    this.schedule = plan.schedule();
    this.tasks = schedule.rank(plan.rank());
    this.dtype = dtype;
    this.maps = new TensorMaps(dtype);
    this.counter = new boolean[schedule.signalCount()];
    this.system = new boolean[schedule.signalCount()];
    for (SignalSpec spec : schedule.signals()) {
      for (int s = spec.first(); s < spec.first() + spec.count(); s++) {
        counter[s] = spec.kind() == SignalSpec.Kind.COUNTER;
        system[s] = spec.scope() == SignalSpec.Scope.SYSTEM;
      }
    }
  }

  /** A region that is packed, by the first task that needs it. */
  private record Pack(int region, int task, int part, int number, long offset, long pitch) {}

  /** A pool as the kernel reads it: tasks at multiples of the stride. */
  record Pool(MemorySegment tasks, int count, int stride) {}

  /** What a task is in a pool: the number of a task, or the complement of that of a pack. */
  List<int[]> items() {
    List<int[]> pools = new ArrayList<>();
    for (int pool = 0; pool < tasks.pools(); pool++) {
      List<Integer> items = new ArrayList<>();
      for (int task = tasks.poolFirst(pool); task < tasks.poolFirst(pool + 1); task++) {
        if (isProduct(task)) {
          addPacks(task, items);
        }
        items.add(task);
      }
      pools.add(items.stream().mapToInt(Integer::intValue).toArray());
    }
    return pools;
  }

  /** Bytes of scratch memory, flags of packs first. Known once {@link #items} was called. */
  long scratchBytes() {
    return flagBytes() + scratchBytes;
  }

  private long flagBytes() {
    return align(8L * packList.size(), 256);
  }

  TensorMaps maps() {
    return maps;
  }

  private boolean isProduct(int task) {
    int kernel = tasks.kernel(task);
    return kernel >= 0 && schedule.kernels().get(kernel).kind().equals(Kernel.GEMM);
  }

  private void addPacks(int task, List<Integer> items) {
    int stream = tasks.firstStream(task);
    for (int part = tasks.firstPart(stream); part < tasks.firstPart(stream + 2); part++) {
      int region = tasks.partRegion(part);
      if (isMapped(region) || packs.containsKey(region)) {
        continue;
      }
      long pitch = align(tasks.regionRowBytes(region), ROW_BYTES);
      Pack pack = new Pack(region, task, part, packList.size(), scratchBytes, pitch);
      scratchBytes += align(pitch * tasks.regionRows(region), 256);
      packs.put(region, pack);
      packList.add(pack);
      items.add(~pack.number());
    }
  }

  private static long align(long bytes, long to) {
    return Math.addExact(bytes, to - 1) / to * to;
  }

  /** Whether the copy engine can read and write a region where it lies. */
  private boolean isMapped(int region) {
    return ((address(region) | slotBytes(region)) & (ENGINE_ALIGNMENT - 1)) == 0
        && (tasks.regionRows(region) == 1 || tasks.regionPitch(region) % ENGINE_ALIGNMENT == 0);
  }

  private long address(int region) {
    long base = plan.buffer(tasks.regionRank(region), tasks.regionBuffer(region));
    if (base == 0) {
      throw new UnavailableException(
          "the buffer %s of rank %d is not mapped on rank %d"
              .formatted(buffer(region).name(), tasks.regionRank(region), plan.rank()),
          Failure.remedy("plan a put to ranks of other nodes").withRank(plan.rank()));
    }
    return base + tasks.regionOffset(region);
  }

  private BufferSpec buffer(int region) {
    return schedule.buffers().get(tasks.regionBuffer(region));
  }

  private long slotBytes(int region) {
    return buffer(region).depth() > 1 ? plan.slotBytes(tasks.regionBuffer(region)) : 0;
  }

  /**
   * Writes a pool.
   *
   * @param items what {@link #items} says of it
   * @param scratchAddress memory of {@link #scratchBytes} on the device
   */
  Pool encode(int[] items, long scratchAddress, Arena arena) {
    scratch = scratchAddress;
    int stride = TaskLayout.TASK;
    for (int item : items) {
      stride = Math.max(stride, item < 0 ? packBytes(packList.get(~item)) : bytes(item));
    }
    // The kernel reads a whole slot, also of the last task.
    MemorySegment all =
        arena.allocate(Math.multiplyExact((long) stride, items.length) + TaskLayout.SLOT, 16);
    for (int i = 0; i < items.length; i++) {
      MemorySegment to = all.asSlice((long) i * stride, stride);
      if (items[i] < 0) {
        encodePack(packList.get(~items[i]), to);
      } else {
        encodeTask(items[i], to);
      }
    }
    return new Pool(all, items.length, stride);
  }

  private int bytes(int task) {
    int stream = tasks.firstStream(task);
    int parts = tasks.firstPart(tasks.firstStream(task + 1)) - tasks.firstPart(stream);
    int head =
        TaskLayout.TASK
            + TaskLayout.REGION * outputs(task)
            + TaskLayout.RAISE * raises(task)
            + TaskLayout.WAIT * waits(task);
    int kept = head + TaskLayout.PART * Math.min(parts, 1);
    if (kept > TaskLayout.SLOT || raises(task) > 255 || waits(task) > 255 || parts > 65535) {
      throw refuse(
          task,
          "has %d outputs, %d raises, %d waits and %d parts, more than a lane can hold"
              .formatted(outputs(task), raises(task), waits(task), parts),
          "cut it into smaller tasks");
    }
    return head + TaskLayout.PART * parts;
  }

  private int outputs(int task) {
    return tasks.firstOutput(task + 1) - tasks.firstOutput(task);
  }

  private int raises(int task) {
    return tasks.firstRaise(task + 1) - tasks.firstRaise(task);
  }

  private int waits(int task) {
    return tasks.firstWait(task + 1) - tasks.firstWait(task);
  }

  private int packBytes(Pack pack) {
    return TaskLayout.TASK
        + TaskLayout.REGION
        + TaskLayout.RAISE
        + TaskLayout.WAIT * waits(pack.task())
        + TaskLayout.PART;
  }

  private void encodePack(Pack pack, MemorySegment to) {
    head(to, TaskLayout.COPY, pack.task(), 1, 1, waits(pack.task()), 1);
    long at = TaskLayout.TASK;
    packed(pack, to.asSlice(at));
    at += TaskLayout.REGION;
    to.set(JAVA_LONG, at + TaskLayout.RAISE_SIGNAL, scratch + 8L * pack.number());
    to.set(JAVA_INT, at + TaskLayout.RAISE_KIND, TaskLayout.FLAG_DEVICE);
    at += TaskLayout.RAISE;
    at = encodeWaits(pack.task(), to, at);
    region(pack.region(), to.asSlice(at));
    partWait(pack.part(), to.asSlice(at + TaskLayout.REGION));
  }

  private void packed(Pack pack, MemorySegment to) {
    long address = scratch + flagBytes() + pack.offset();
    to.set(JAVA_LONG, TaskLayout.REGION_ADDRESS, address);
    to.set(JAVA_LONG, TaskLayout.REGION_PITCH, pack.pitch());
    to.set(JAVA_LONG, TaskLayout.REGION_ROW_BYTES, tasks.regionRowBytes(pack.region()));
    to.set(JAVA_LONG, TaskLayout.REGION_ROWS, tasks.regionRows(pack.region()));
    to.set(JAVA_INT, TaskLayout.REGION_DEPTH, 1);
    to.set(JAVA_INT, TaskLayout.REGION_MAP, TaskLayout.NO_MAP);
  }

  private static void head(
      MemorySegment to, int kind, int number, int outputs, int raises, int waits, int parts) {
    to.set(JAVA_BYTE, TaskLayout.TASK_KIND, (byte) kind);
    to.set(JAVA_BYTE, TaskLayout.TASK_OUTPUTS, (byte) outputs);
    to.set(JAVA_BYTE, TaskLayout.TASK_RAISES, (byte) raises);
    to.set(JAVA_BYTE, TaskLayout.TASK_WAITS, (byte) waits);
    to.set(JAVA_SHORT, TaskLayout.TASK_PARTS, (short) parts);
    to.set(JAVA_INT, TaskLayout.TASK_NUMBER, number);
  }

  private void encodeTask(int task, MemorySegment to) {
    int stream = tasks.firstStream(task);
    int parts = tasks.firstPart(tasks.firstStream(task + 1)) - tasks.firstPart(stream);
    head(to, kind(task), task, outputs(task), raises(task), waits(task), parts);
    long at = TaskLayout.TASK;
    for (int output = 0; output < outputs(task); output++, at += TaskLayout.REGION) {
      region(tasks.output(tasks.firstOutput(task) + output), to.asSlice(at));
    }
    for (int r = tasks.firstRaise(task); r < tasks.firstRaise(task + 1); r++) {
      encodeRaise(r, to.asSlice(at));
      at += TaskLayout.RAISE;
    }
    at = encodeWaits(task, to, at);
    if (isProduct(task)) {
      encodeProduct(task, to, at);
      return;
    }
    for (int part = tasks.firstPart(stream); part < tasks.firstPart(stream) + parts; part++) {
      region(tasks.partRegion(part), to.asSlice(at));
      partWait(part, to.asSlice(at + TaskLayout.REGION));
      at += TaskLayout.PART;
    }
  }

  private int kind(int task) {
    return switch (tasks.kind(task)) {
      case COMPUTE -> {
        String kind = schedule.kernels().get(tasks.kernel(task)).kind();
        yield switch (kind) {
          case Kernel.GEMM -> TaskLayout.GEMM;
          case Kernel.COPY -> TaskLayout.COPY;
          default -> throw refuse(task, "is of kind " + kind, "use the device host");
        };
      }
      case REDUCE -> TaskLayout.REDUCE;
      case PUT -> {
        requireMapped(task);
        yield TaskLayout.COPY;
      }
      case NOTIFY -> {
        requireMapped(task);
        yield TaskLayout.NOTIFY;
      }
    };
  }

  private void requireMapped(int task) {
    if (plan.transfer(task) >= 0) {
      throw refuse(task, "goes by wire", "use the device host, or ranks of one node");
    }
  }

  private void encodeRaise(int raise, MemorySegment to) {
    int owner = tasks.raiseRank(raise);
    int signal = tasks.raiseSignal(raise);
    boolean wide = system[signal] || owner != plan.rank();
    to.set(JAVA_LONG, TaskLayout.RAISE_SIGNAL, plan.signals(owner) + 8L * signal);
    to.set(
        JAVA_INT,
        TaskLayout.RAISE_KIND,
        counter[signal]
            ? wide ? TaskLayout.COUNTER_SYSTEM : TaskLayout.COUNTER_DEVICE
            : wide ? TaskLayout.FLAG_SYSTEM : TaskLayout.FLAG_DEVICE);
  }

  private long encodeWaits(int task, MemorySegment to, long from) {
    long at = from;
    for (int w = tasks.firstWait(task); w < tasks.firstWait(task + 1); w++) {
      encodeWait(tasks.waitSignal(w), tasks.waitCount(w), tasks.waitLag(w), to.asSlice(at));
      at += TaskLayout.WAIT;
    }
    return at;
  }

  private void partWait(int part, MemorySegment to) {
    int signal = tasks.partSignal(part);
    if (signal != RankSchedule.NO_SIGNAL) {
      encodeWait(signal, tasks.partCount(part), tasks.partLag(part), to);
    }
  }

  private void encodeWait(int signal, int count, int lag, MemorySegment to) {
    to.set(JAVA_LONG, TaskLayout.WAIT_SIGNAL, plan.signals(plan.rank()) + 8L * signal);
    to.set(JAVA_INT, TaskLayout.WAIT_COUNT, count);
    to.set(JAVA_SHORT, TaskLayout.WAIT_LAG, (short) lag);
    to.set(JAVA_SHORT, TaskLayout.WAIT_SYSTEM, (short) (system[signal] ? 1 : 0));
  }

  private void region(int region, MemorySegment to) {
    to.set(JAVA_LONG, TaskLayout.REGION_ADDRESS, address(region));
    to.set(JAVA_LONG, TaskLayout.REGION_PITCH, tasks.regionPitch(region));
    to.set(JAVA_LONG, TaskLayout.REGION_ROW_BYTES, tasks.regionRowBytes(region));
    to.set(JAVA_LONG, TaskLayout.REGION_ROWS, tasks.regionRows(region));
    to.set(JAVA_LONG, TaskLayout.REGION_SLOT_BYTES, slotBytes(region));
    to.set(JAVA_INT, TaskLayout.REGION_DEPTH, buffer(region).depth());
    to.set(JAVA_INT, TaskLayout.REGION_MAP, TaskLayout.NO_MAP);
  }

  /** The bias if there is one, then parts of A and of B in turn. */
  private void encodeProduct(int task, MemorySegment to, long from) {
    Kernel kernel = schedule.kernels().get(tasks.kernel(task));
    boolean transposed = Boolean.parseBoolean(kernel.attribute(Kernel.TRANSPOSE_B, "false"));
    boolean biased = Boolean.parseBoolean(kernel.attribute(Kernel.BIAS, "false"));
    Activation activation =
        Activation.of(kernel.attribute(Kernel.ACTIVATION, Activation.NONE.label()));
    to.set(JAVA_BYTE, TaskLayout.TASK_ACTIVATION, (byte) TaskLayout.number(activation));
    to.set(JAVA_BYTE, TaskLayout.TASK_BIASED, (byte) (biased ? 1 : 0));

    int stream = tasks.firstStream(task);
    int a = tasks.firstPart(stream);
    int b = tasks.firstPart(stream + 1);
    int count = b - a;
    if (count == 0 || tasks.firstPart(stream + 2) - b != count) {
      throw refuse(
          task,
          "has %d parts of A and %d of B".formatted(count, tasks.firstPart(stream + 2) - b),
          "give both the same number, at least 1");
    }
    long rows = 0;
    for (int o = tasks.firstOutput(task); o < tasks.firstOutput(task + 1); o++) {
      rows += tasks.regionRows(tasks.output(o));
    }
    int output = tasks.output(tasks.firstOutput(task));
    long columns = tasks.regionRowBytes(output) / dtype.bytes();
    if (rows > TILE_ROWS || columns > TILE_COLUMNS) {
      throw refuse(
          task,
          "computes a tile of %d x %d".formatted(rows, columns),
          "plan tiles of at most %d x %d: options tile-rows and tile-columns"
              .formatted(TILE_ROWS, TILE_COLUMNS));
    }
    if (outputs(task) == 1 && isMapped(output)) {
      map(
          output,
          GROUP_ROWS,
          rows % GROUP_ROWS != 0,
          columns % (ROW_BYTES / dtype.bytes()) != 0,
          to.asSlice(TaskLayout.TASK));
    }
    long at = from;
    if (biased) {
      int part = tasks.firstPart(stream + 2);
      expect(task, "the bias", tasks.partRegion(part), 1, columns);
      region(tasks.partRegion(part), to.asSlice(at));
      partWait(part, to.asSlice(at + TaskLayout.REGION));
      at += TaskLayout.PART;
    }
    long blocks = 0;
    for (int i = 0; i < count; i++) {
      int left = tasks.partRegion(a + i);
      int right = tasks.partRegion(b + i);
      long k = tasks.regionRowBytes(left) / dtype.bytes();
      expect(task, "A", left, rows, k);
      expect(task, "B", right, transposed ? columns : k, transposed ? k : columns);
      boolean ragged = tasks.regionRowBytes(left) % ROW_BYTES != 0;
      operand(a + i, TILE_ROWS, false, ragged, to.asSlice(at));
      at += TaskLayout.PART;
      operand(
          b + i,
          transposed ? TILE_COLUMNS : ROW_BYTES / dtype.bytes(),
          !transposed && ragged,
          transposed && ragged,
          to.asSlice(at));
      at += TaskLayout.PART;
      blocks += Math.ceilDiv(tasks.regionRowBytes(left), ROW_BYTES);
    }
    to.set(JAVA_INT, TaskLayout.TASK_BLOCKS, Math.toIntExact(blocks));
  }

  private void expect(int task, String what, int region, long rows, long columns) {
    if (tasks.regionRows(region) != rows
        || tasks.regionRowBytes(region) != columns * dtype.bytes()) {
      throw refuse(
          task,
          "reads %d rows of %d bytes as %s"
              .formatted(tasks.regionRows(region), tasks.regionRowBytes(region), what),
          "%d x %d %s is needed".formatted(rows, columns, dtype.label()));
    }
  }

  /** Where nothing is ragged along k, what lies beyond a region does no harm: it is not used. */
  private void operand(
      int part, int boxRows, boolean endsAtRow, boolean endsAtColumn, MemorySegment to) {
    int region = tasks.partRegion(part);
    Pack pack = packs.get(region);
    if (pack == null) {
      region(region, to);
      partWait(part, to.asSlice(TaskLayout.REGION));
      map(region, boxRows, endsAtRow, endsAtColumn, to);
      return;
    }
    packed(pack, to);
    to.set(
        JAVA_INT,
        TaskLayout.REGION_MAP,
        maps.index(
            new TensorMaps.Matrix(
                to.get(JAVA_LONG, TaskLayout.REGION_ADDRESS),
                0,
                1,
                pack.pitch(),
                tasks.regionRowBytes(region) / dtype.bytes(),
                tasks.regionRows(region),
                boxRows)));
    MemorySegment wait = to.asSlice(TaskLayout.REGION);
    wait.set(JAVA_LONG, TaskLayout.WAIT_SIGNAL, scratch + 8L * pack.number());
    wait.set(JAVA_INT, TaskLayout.WAIT_COUNT, 1);
  }

  /** Describes a region to the copy engine, by the matrix that it is a part of where that goes. */
  private void map(
      int region, int boxRows, boolean endsAtRow, boolean endsAtColumn, MemorySegment to) {
    BufferSpec buffer = buffer(region);
    int size = dtype.bytes();
    long pitch = tasks.regionPitch(region);
    long offset = tasks.regionOffset(region);
    long base = address(region) - offset;
    long rows = tasks.regionRows(region);
    long columns = tasks.regionRowBytes(region) / size;
    long bufferRows = buffer.bytes(tasks.regionRank(region)) / pitch;
    boolean part =
        pitch % ENGINE_ALIGNMENT == 0
            && base % ENGINE_ALIGNMENT == 0
            && offset % pitch + tasks.regionRowBytes(region) <= pitch
            && offset / pitch + rows <= bufferRows;
    long x = part ? offset % pitch / size : 0;
    long y = part ? offset / pitch : 0;
    TensorMaps.Matrix matrix =
        new TensorMaps.Matrix(
            part ? base : base + offset,
            slotBytes(region),
            buffer.depth(),
            part || rows > 1 ? pitch : align(columns * size, ENGINE_ALIGNMENT),
            part && !endsAtColumn ? pitch / size : x + columns,
            part && !endsAtRow ? bufferRows : y + rows,
            boxRows);
    to.set(JAVA_INT, TaskLayout.REGION_MAP, maps.index(matrix));
    to.set(JAVA_INT, TaskLayout.REGION_X, Math.toIntExact(x));
    to.set(JAVA_INT, TaskLayout.REGION_Y, Math.toIntExact(y));
  }

  private UsageException refuse(int task, String what, String remedy) {
    String words = schedule.describe(plan.rank(), task);
    return new UsageException(
        "%s %s, which the device cuda can't run".formatted(words, what),
        Failure.remedy(remedy)
            .withRank(plan.rank())
            .withOperation(schedule.name())
            .withTask(words));
  }
}
