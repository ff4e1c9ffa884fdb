package org.mkernel.api.schedule;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.mkernel.api.DType;
import org.mkernel.api.UsageException;

/**
 * Writes a schedule. First what all ranks share (buffers, signals, kernels), then for each rank its
 * pools with their tasks, and its roles. Tasks are written into columns: a task costs no object.
 *
 * <p>The builder itself adds the signals {@code entered}, one flag per rank, and the tasks that
 * raise them: whoever calls {@link RankBuilder#awaitEntered} is told by that owner. Not safe for
 * use by several threads.
 */
public final class ScheduleBuilder {
  private static final String ENTER = "enter";

  final String name;
  final Topology topology;
  final List<BufferSpec> buffers = new ArrayList<>();
  final List<SignalSpec> signals = new ArrayList<>();
  final List<Kernel> kernels = new ArrayList<>();
  final @Nullable RankBuilder[] ranks;
  private final Map<String, Integer> bufferIndex = new HashMap<>();
  private final boolean[][] entersFor;
  private final int entered;
  private int signalCount;

  /**
   * Starts a schedule.
   *
   * @param name the operation, for reports
   * @param topology its ranks
   */
  public ScheduleBuilder(String name, Topology topology) {
    this.name = Objects.requireNonNull(name, "name");
    this.topology = Objects.requireNonNull(topology, "topology");
    this.ranks = new RankBuilder[topology.size()];
    this.entersFor = new boolean[topology.size()][];
    this.entered = flags("entered", topology.size(), SignalSpec.Scope.SYSTEM);
  }

  /**
   * The ranks.
   *
   * @return as given
   */
  public Topology topology() {
    return topology;
  }

  /**
   * Declares a tensor of the caller that is read.
   *
   * @param name its operand name
   * @param dtype its type
   * @param bytes its size on each rank, in bytes; 0 where a rank has none
   * @return the number of the buffer
   */
  public int input(String name, DType dtype, long[] bytes) {
    return buffer(name, BufferSpec.Use.INPUT, dtype, bytes, 1);
  }

  /**
   * Declares a tensor of the caller that is written.
   *
   * @param name its operand name
   * @param dtype its type
   * @param bytes its size on each rank, in bytes; 0 where a rank has none
   * @return the number of the buffer
   */
  public int output(String name, DType dtype, long[] bytes) {
    return buffer(name, BufferSpec.Use.OUTPUT, dtype, bytes, 1);
  }

  /**
   * Declares memory of the operation, of equal size on all ranks.
   *
   * @param name its name
   * @param dtype the type of its elements
   * @param bytes the size of one slot
   * @param depth the number of slots: 2 lets the next epoch write while this one still reads
   * @return the number of the buffer
   */
  public int workspace(String name, DType dtype, long bytes, int depth) {
    long[] sizes = new long[topology.size()];
    Arrays.fill(sizes, bytes);
    return buffer(name, BufferSpec.Use.WORKSPACE, dtype, sizes, depth);
  }

  private int buffer(String name, BufferSpec.Use use, DType dtype, long[] bytes, int depth) {
    if (bytes.length != topology.size()) {
      throw new UsageException(
          "buffer %s has sizes for %d ranks; the world has %d"
              .formatted(name, bytes.length, topology.size()));
    }
    int index = buffers.size();
    if (bufferIndex.putIfAbsent(name, index) != null) {
      throw new UsageException("buffer %s is declared twice".formatted(name));
    }
    buffers.add(new BufferSpec(index, name, use, dtype, bytes, depth));
    return index;
  }

  /**
   * Declares flags on every rank.
   *
   * @param name what they mean
   * @param count how many
   * @param scope who must see them
   * @return the number of the first
   */
  public int flags(String name, int count, SignalSpec.Scope scope) {
    return signals(name, count, SignalSpec.Kind.FLAG, scope);
  }

  /**
   * Declares counters on every rank.
   *
   * @param name what they mean
   * @param count how many
   * @param scope who must see them
   * @return the number of the first
   */
  public int counters(String name, int count, SignalSpec.Scope scope) {
    return signals(name, count, SignalSpec.Kind.COUNTER, scope);
  }

  private int signals(String name, int count, SignalSpec.Kind kind, SignalSpec.Scope scope) {
    if (count < 0) {
      throw new UsageException("%d signals %s; at least 0 are needed".formatted(count, name));
    }
    int first = signalCount;
    signals.add(new SignalSpec(first, count, name, kind, scope));
    signalCount = Math.addExact(signalCount, count);
    return first;
  }

  /**
   * Declares a kernel.
   *
   * @param kernel kind and attributes
   * @return its number, the same for equal kernels
   */
  public int kernel(Kernel kernel) {
    int index = kernels.indexOf(kernel);
    if (index < 0) {
      index = kernels.size();
      kernels.add(kernel);
    }
    return index;
  }

  /**
   * Starts, or goes on with, the tasks of a rank.
   *
   * @param rank the rank
   * @return its builder
   */
  public RankBuilder rank(int rank) {
    Objects.checkIndex(rank, ranks.length);
    RankBuilder builder = ranks[rank];
    if (builder == null) {
      builder = new RankBuilder(rank);
      ranks[rank] = builder;
    }
    return builder;
  }

  /**
   * Ends the schedule: adds the tasks that raise {@code entered} and freezes the columns.
   *
   * @return the schedule of all ranks, not yet checked
   */
  public Schedule build() {
    boolean[][] writers = new boolean[ranks.length][ranks.length];
    for (int writer = 0; writer < ranks.length; writer++) {
      boolean[] owners = entersFor[writer];
      for (int owner = 0; owners != null && owner < ranks.length; owner++) {
        writers[owner][writer] = owners[owner];
      }
    }
    RankSchedule[] frozen = new RankSchedule[ranks.length];
    for (int rank = 0; rank < ranks.length; rank++) {
      RankBuilder builder = rank(rank);
      builder.addEnter(writers[rank]);
      builder.end();
      frozen[rank] = new RankSchedule(builder);
    }
    return new Schedule(name, topology, buffers, signals, signalCount, entered, kernels, frozen);
  }

  /**
   * The tasks of one rank. Calls that describe a task come after the call that starts it and before
   * the next one.
   */
  public final class RankBuilder {
    final int rank;
    byte[] kinds = new byte[16];
    int tasks;
    final IntColumn kernel = new IntColumn();
    final IntColumn firstWait = new IntColumn();
    final IntColumn firstStream = new IntColumn();
    final IntColumn firstOutput = new IntColumn();
    final IntColumn firstRaise = new IntColumn();
    final IntColumn firstPart = new IntColumn();
    final IntColumn partRegion = new IntColumn();
    final IntColumn partSignal = new IntColumn();
    final IntColumn partCount = new IntColumn();
    final IntColumn partLag = new IntColumn();
    final IntColumn output = new IntColumn();
    final IntColumn waitSignal = new IntColumn();
    final IntColumn waitCount = new IntColumn();
    final IntColumn waitLag = new IntColumn();
    final IntColumn raiseRank = new IntColumn();
    final IntColumn raiseSignal = new IntColumn();
    final IntColumn regionRank = new IntColumn();
    final IntColumn regionBuffer = new IntColumn();
    final LongColumn regionOffset = new LongColumn();
    final LongColumn regionRows = new LongColumn();
    final LongColumn regionRowBytes = new LongColumn();
    final LongColumn regionPitch = new LongColumn();
    final IntColumn poolFirst = new IntColumn();
    final List<String> poolNames = new ArrayList<>();
    final List<Role> roles = new ArrayList<>();

    private RankBuilder(int rank) {
      this.rank = rank;
    }

    byte[] kinds() {
      return Arrays.copyOf(kinds, tasks);
    }

    /**
     * Starts a pool: the tasks that follow belong to it, in the order of their claims.
     *
     * @param name its name
     * @return its number
     */
    public int pool(String name) {
      poolFirst.add(tasks);
      poolNames.add(Objects.requireNonNull(name, "name"));
      return poolNames.size() - 1;
    }

    /**
     * Declares a role.
     *
     * @param name its name
     * @param compute whether its tasks compute
     * @param pools the pools that its lanes drain, in order
     * @return this
     */
    public RankBuilder role(String name, boolean compute, int... pools) {
      roles.add(new Role(name, compute, false, pools));
      return this;
    }

    /**
     * Declares a role whose lanes claim a head only if its waits are met.
     *
     * @param name its name
     * @param compute whether its tasks compute
     * @param pools the pools that its lanes drain
     * @return this
     */
    public RankBuilder readyFirstRole(String name, boolean compute, int... pools) {
      roles.add(new Role(name, compute, true, pools));
      return this;
    }

    /**
     * Writes down a region of this rank.
     *
     * @param buffer its buffer
     * @param offset bytes from the start of the slot
     * @param rows rows
     * @param rowBytes bytes of a row
     * @param pitch bytes from a row to the next
     * @return its number, for {@link #stream}, {@link #part} and {@link #output}
     */
    public int region(int buffer, long offset, long rows, long rowBytes, long pitch) {
      return regionOf(rank, buffer, offset, rows, rowBytes, pitch);
    }

    /**
     * Writes down a region of any rank.
     *
     * @param owner the rank whose memory it is
     * @param buffer its buffer
     * @param offset bytes from the start of the slot
     * @param rows rows
     * @param rowBytes bytes of a row
     * @param pitch bytes from a row to the next
     * @return its number
     */
    public int regionOf(int owner, int buffer, long offset, long rows, long rowBytes, long pitch) {
      regionRank.add(owner);
      regionBuffer.add(buffer);
      regionOffset.add(offset);
      regionRows.add(rows);
      regionRowBytes.add(rowBytes);
      regionPitch.add(pitch);
      return regionRank.size() - 1;
    }

    private RankBuilder task(TaskKind kind, int kernelIndex) {
      if (poolNames.isEmpty()) {
        throw new UsageException("rank %d starts a task outside any pool".formatted(rank));
      }
      if (tasks == kinds.length) {
        kinds = Arrays.copyOf(kinds, tasks * 2);
      }
      kinds[tasks++] = (byte) kind.ordinal();
      kernel.add(kernelIndex);
      firstWait.add(waitSignal.size());
      firstStream.add(firstPart.size());
      firstOutput.add(output.size());
      firstRaise.add(raiseRank.size());
      return this;
    }

    /**
     * Starts a compute task in the last pool.
     *
     * @param kernelIndex what {@link ScheduleBuilder#kernel} returned
     * @return this
     */
    public RankBuilder compute(int kernelIndex) {
      Objects.checkIndex(kernelIndex, kernels.size());
      return task(TaskKind.COMPUTE, kernelIndex);
    }

    /**
     * Starts a reduce in the last pool; its sources are the parts of one stream.
     *
     * @return this
     */
    public RankBuilder reduce() {
      return task(TaskKind.REDUCE, -1);
    }

    /**
     * Starts a task in the last pool that only raises signals.
     *
     * @return this
     */
    public RankBuilder notifies() {
      return task(TaskKind.NOTIFY, -1);
    }

    /**
     * Starts a put to another rank in the last pool. It must be followed by {@link #awaitEntered}.
     * Within a rank, bytes are copied by {@link Kernel#COPY}.
     *
     * @param source a region of this rank
     * @param destination a region of equal rows and bytes of a row, of another rank
     * @param flag the flag raised at the destination's owner after the bytes have arrived
     * @return this
     */
    public RankBuilder put(int source, int destination, int flag) {
      task(TaskKind.PUT, -1);
      stream();
      part(source);
      output(destination);
      return raise(regionRank.get(destination), flag);
    }

    /**
     * Starts a stream of the task. Streams are numbered from 0.
     *
     * @return this
     */
    public RankBuilder stream() {
      firstPart.add(partRegion.size());
      return this;
    }

    /**
     * Adds a part to the stream.
     *
     * @param region its region
     * @return this
     */
    public RankBuilder part(int region) {
      return part(region, RankSchedule.NO_SIGNAL, 1, 0);
    }

    /**
     * Adds a part that is read once its own wait is met.
     *
     * @param region its region
     * @param signal a signal of this rank
     * @param count 1 for a flag, the adds of an epoch for a counter
     * @param lag epochs to look back, 0 for none
     * @return this
     */
    public RankBuilder part(int region, int signal, int count, int lag) {
      partRegion.add(region);
      partSignal.add(signal);
      partCount.add(count);
      partLag.add(lag);
      return this;
    }

    /**
     * Adds an output.
     *
     * @param region its region
     * @return this
     */
    public RankBuilder output(int region) {
      output.add(region);
      return this;
    }

    /**
     * Waits for a flag of this rank.
     *
     * @param flag the flag
     * @return this
     */
    public RankBuilder await(int flag) {
      return await(flag, 1, 0);
    }

    /**
     * Waits until {@code signal ≥ (epoch − lag) · count}.
     *
     * @param signal a signal of this rank
     * @param count 1 for a flag, the adds of an epoch for a counter
     * @param lag epochs to look back, 0 for none
     * @return this
     */
    public RankBuilder await(int signal, int count, int lag) {
      waitSignal.add(signal);
      waitCount.add(count);
      waitLag.add(lag);
      return this;
    }

    /**
     * Waits until the owner of a buffer no longer needs the slot that this epoch writes.
     *
     * @param owner the rank whose memory is written
     * @param buffer the buffer
     * @return this
     */
    public RankBuilder awaitEntered(int owner, int buffer) {
      boolean[] owners = entersFor[rank];
      if (owners == null) {
        owners = new boolean[ranks.length];
        entersFor[rank] = owners;
      }
      owners[owner] = true;
      return await(entered + owner, 1, buffers.get(buffer).depth() - 1);
    }

    /**
     * Raises a signal when the task is done. For a put the first raise is the one that {@link #put}
     * names; one more, on this rank, is {@code done}: the source may be reused.
     *
     * @param owner the rank whose signal it is
     * @param signal the signal
     * @return this
     */
    public RankBuilder raise(int owner, int signal) {
      raiseRank.add(owner);
      raiseSignal.add(signal);
      return this;
    }

    private void addEnter(boolean[] writers) {
      int pool = -1;
      for (int writer = 0; writer < writers.length; writer++) {
        if (writers[writer]) {
          if (pool < 0) {
            pool = pool(ENTER);
          }
          notifies().raise(writer, entered + rank);
        }
      }
      if (pool < 0) {
        return;
      }
      for (int i = 0; i < roles.size(); i++) {
        Role role = roles.get(i);
        if (!role.compute() || i == roles.size() - 1) {
          int[] pools = new int[role.pools().length + 1];
          System.arraycopy(role.pools(), 0, pools, 1, pools.length - 1);
          pools[0] = pool;
          roles.set(i, new Role(role.name(), role.compute(), role.readyFirst(), pools));
          return;
        }
      }
      roles.add(new Role(ENTER, false, false, new int[] {pool}));
    }

    private void end() {
      poolFirst.add(tasks);
      firstWait.add(waitSignal.size());
      firstStream.add(firstPart.size());
      firstOutput.add(output.size());
      firstRaise.add(raiseRank.size());
      firstPart.add(partRegion.size());
    }
  }
}
