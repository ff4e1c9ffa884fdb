package org.mkernel.api.schedule;

import java.util.List;

/**
 * The tasks of one rank, in columns. Tasks are numbered from 0; a pool is a run of consecutive
 * numbers, claimed in that order. Waits, raises, streams, parts and outputs of a task are runs in
 * columns of their own: {@code firstWait(t) … firstWait(t + 1) − 1}, and so on.
 *
 * <p>A task runs so: its waits are met; it reads its streams, each part once the part's own wait is
 * met; it writes its outputs; it raises its signals. A put has one stream of one part (the source),
 * one output (the destination, on another rank), its raise 0 is the flag at the destination, and
 * raise 1, if any, is {@code done} on its own rank.
 *
 * <p>A wait wants {@code (epoch − lag) · count}, and is met when the signal is at least that.
 */
public final class RankSchedule {
  /** In {@link #partSignal}: the part has no wait of its own. */
  public static final int NO_SIGNAL = -1;

  final int rank;
  final byte[] kind;
  final int[] kernel;
  final int[] firstWait;
  final int[] firstStream;
  final int[] firstOutput;
  final int[] firstRaise;
  final int[] firstPart;
  final int[] partRegion;
  final int[] partSignal;
  final int[] partCount;
  final int[] partLag;
  final int[] output;
  final int[] waitSignal;
  final int[] waitCount;
  final int[] waitLag;
  final int[] raiseRank;
  final int[] raiseSignal;
  final int[] regionRank;
  final int[] regionBuffer;
  final long[] regionOffset;
  final long[] regionRows;
  final long[] regionRowBytes;
  final long[] regionPitch;
  final int[] poolFirst;
  final List<String> poolNames;
  final List<Role> roles;

  RankSchedule(ScheduleBuilder.RankBuilder b) {
    rank = b.rank;
    kind = b.kinds();
    kernel = b.kernel.toArray();
    firstWait = b.firstWait.toArray();
    firstStream = b.firstStream.toArray();
    firstOutput = b.firstOutput.toArray();
    firstRaise = b.firstRaise.toArray();
    firstPart = b.firstPart.toArray();
    partRegion = b.partRegion.toArray();
    partSignal = b.partSignal.toArray();
    partCount = b.partCount.toArray();
    partLag = b.partLag.toArray();
    output = b.output.toArray();
    waitSignal = b.waitSignal.toArray();
    waitCount = b.waitCount.toArray();
    waitLag = b.waitLag.toArray();
    raiseRank = b.raiseRank.toArray();
    raiseSignal = b.raiseSignal.toArray();
    regionRank = b.regionRank.toArray();
    regionBuffer = b.regionBuffer.toArray();
    regionOffset = b.regionOffset.toArray();
    regionRows = b.regionRows.toArray();
    regionRowBytes = b.regionRowBytes.toArray();
    regionPitch = b.regionPitch.toArray();
    poolFirst = b.poolFirst.toArray();
    poolNames = List.copyOf(b.poolNames);
    roles = List.copyOf(b.roles);
  }

  /**
   * Whose schedule this is.
   *
   * @return the rank
   */
  public int rank() {
    return rank;
  }

  /**
   * The number of tasks.
   *
   * @return tasks of all pools
   */
  public int tasks() {
    return kind.length;
  }

  /**
   * The number of pools.
   *
   * @return pools
   */
  public int pools() {
    return poolNames.size();
  }

  /**
   * The name of a pool.
   *
   * @param pool its number
   * @return its name
   */
  public String poolName(int pool) {
    return poolNames.get(pool);
  }

  /**
   * Where a pool starts.
   *
   * @param pool its number, or {@link #pools} for the end of the last
   * @return its first task
   */
  public int poolFirst(int pool) {
    return poolFirst[pool];
  }

  /**
   * The pool of a task, by binary search.
   *
   * @param task a task
   * @return its pool
   */
  public int poolOf(int task) {
    int low = 0;
    int high = pools() - 1;
    while (low < high) {
      int middle = (low + high + 1) >>> 1;
      if (poolFirst[middle] <= task) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return low;
  }

  /**
   * The roles.
   *
   * @return in the order in which they were declared
   */
  public List<Role> roles() {
    return roles;
  }

  /**
   * What a task does.
   *
   * @param task a task
   * @return its kind
   */
  public TaskKind kind(int task) {
    return KINDS[kind[task]];
  }

  private static final TaskKind[] KINDS = TaskKind.values();

  /**
   * What a compute task calls.
   *
   * @param task a task
   * @return an index into {@link Schedule#kernels}, −1 for other tasks
   */
  public int kernel(int task) {
    return kernel[task];
  }

  /**
   * Where the waits of a task start.
   *
   * @param task a task, or {@link #tasks} for the end
   * @return an index of the columns {@code wait…}
   */
  public int firstWait(int task) {
    return firstWait[task];
  }

  /**
   * Where the streams of a task start.
   *
   * @param task a task, or {@link #tasks} for the end
   * @return the number of a stream
   */
  public int firstStream(int task) {
    return firstStream[task];
  }

  /**
   * Where the outputs of a task start.
   *
   * @param task a task, or {@link #tasks} for the end
   * @return an index for {@link #output}
   */
  public int firstOutput(int task) {
    return firstOutput[task];
  }

  /**
   * Where the raises of a task start.
   *
   * @param task a task, or {@link #tasks} for the end
   * @return an index of the columns {@code raise…}
   */
  public int firstRaise(int task) {
    return firstRaise[task];
  }

  /**
   * Where the parts of a stream start.
   *
   * @param stream a stream, or the number of streams for the end
   * @return an index of the columns {@code part…}
   */
  public int firstPart(int stream) {
    return firstPart[stream];
  }

  /**
   * The region of a part.
   *
   * @param part a part
   * @return its region
   */
  public int partRegion(int part) {
    return partRegion[part];
  }

  /**
   * What a part waits for before it is read, beyond the waits of its task.
   *
   * @param part a part
   * @return a signal of this rank, or {@link #NO_SIGNAL}
   */
  public int partSignal(int part) {
    return partSignal[part];
  }

  /**
   * What the wait of a part multiplies the epoch by.
   *
   * @param part a part
   * @return as {@link #waitCount}
   */
  public int partCount(int part) {
    return partCount[part];
  }

  /**
   * How many epochs the wait of a part looks back.
   *
   * @param part a part
   * @return as {@link #waitLag}
   */
  public int partLag(int part) {
    return partLag[part];
  }

  /**
   * An output.
   *
   * @param output its index
   * @return its region
   */
  public int output(int output) {
    return this.output[output];
  }

  /**
   * The number of waits of tasks.
   *
   * @return the length of the columns {@code wait…}
   */
  public int waits() {
    return waitSignal.length;
  }

  /**
   * What a wait looks at.
   *
   * @param wait a wait
   * @return a signal of this rank
   */
  public int waitSignal(int wait) {
    return waitSignal[wait];
  }

  /**
   * What a wait multiplies the epoch by.
   *
   * @param wait a wait
   * @return 1 for a flag, the adds of an epoch for a counter
   */
  public int waitCount(int wait) {
    return waitCount[wait];
  }

  /**
   * How many epochs a wait looks back.
   *
   * @param wait a wait
   * @return 0 for the current epoch
   */
  public int waitLag(int wait) {
    return waitLag[wait];
  }

  /**
   * Where a raise goes.
   *
   * @param raise a raise
   * @return a rank
   */
  public int raiseRank(int raise) {
    return raiseRank[raise];
  }

  /**
   * What is raised.
   *
   * @param raise a raise
   * @return a signal of {@link #raiseRank}
   */
  public int raiseSignal(int raise) {
    return raiseSignal[raise];
  }

  /**
   * The number of regions.
   *
   * @return the length of the columns {@code region…}
   */
  public int regions() {
    return regionRank.length;
  }

  /**
   * Whose memory a region is.
   *
   * @param region a region
   * @return a rank
   */
  public int regionRank(int region) {
    return regionRank[region];
  }

  /**
   * The buffer of a region.
   *
   * @param region a region
   * @return an index into {@link Schedule#buffers}
   */
  public int regionBuffer(int region) {
    return regionBuffer[region];
  }

  /**
   * Where a region starts.
   *
   * @param region a region
   * @return bytes from the start of the buffer's slot
   */
  public long regionOffset(int region) {
    return regionOffset[region];
  }

  /**
   * The rows of a region.
   *
   * @param region a region
   * @return at least 1
   */
  public long regionRows(int region) {
    return regionRows[region];
  }

  /**
   * The bytes of a row that belong to a region.
   *
   * @param region a region
   * @return at least 1
   */
  public long regionRowBytes(int region) {
    return regionRowBytes[region];
  }

  /**
   * From the start of a row to the start of the next.
   *
   * @param region a region
   * @return bytes
   */
  public long regionPitch(int region) {
    return regionPitch[region];
  }

  /**
   * The bytes of a region.
   *
   * @param region a region
   * @return rows · bytes of a row
   */
  public long regionBytes(int region) {
    return regionRows[region] * regionRowBytes[region];
  }
}
