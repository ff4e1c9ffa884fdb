package org.mkernel.api.schedule;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.List;
import java.util.TreeMap;

/** What all ranks of a world do in one launch. Immutable; made by a {@link ScheduleBuilder}. */
public final class Schedule {
  private final String name;
  private final Topology topology;
  private final List<BufferSpec> buffers;
  private final List<SignalSpec> signals;
  private final int signalCount;
  private final int entered;
  private final List<Kernel> kernels;
  private final RankSchedule[] ranks;
  private volatile String digest = "";

  Schedule(
      String name,
      Topology topology,
      List<BufferSpec> buffers,
      List<SignalSpec> signals,
      int signalCount,
      int entered,
      List<Kernel> kernels,
      RankSchedule[] ranks) {
    this.name = name;
    this.topology = topology;
    this.buffers = List.copyOf(buffers);
    this.signals = List.copyOf(signals);
    this.signalCount = signalCount;
    this.entered = entered;
    this.kernels = List.copyOf(kernels);
    this.ranks = ranks;
  }

  /**
   * The operation.
   *
   * @return its name
   */
  public String name() {
    return name;
  }

  /**
   * The ranks.
   *
   * @return which rank is where
   */
  public Topology topology() {
    return topology;
  }

  /**
   * The buffers.
   *
   * @return by number
   */
  public List<BufferSpec> buffers() {
    return buffers;
  }

  /**
   * The signals.
   *
   * @return groups, by first number
   */
  public List<SignalSpec> signals() {
    return signals;
  }

  /**
   * The group of a signal.
   *
   * @param signal its number
   * @return the group that holds it
   */
  public SignalSpec signal(int signal) {
    for (SignalSpec spec : signals) {
      if (signal >= spec.first() && signal < spec.first() + spec.count()) {
        return spec;
      }
    }
    throw new IndexOutOfBoundsException("signal " + signal + " of " + signalCount);
  }

  /**
   * A signal in words.
   *
   * @param signal its number
   * @return name and index within its group, as {@code arrived[3]}
   */
  public String signalName(int signal) {
    SignalSpec spec = signal(signal);
    return spec.name() + "[" + (signal - spec.first()) + "]";
  }

  /**
   * How many signals each rank has.
   *
   * @return the number
   */
  public int signalCount() {
    return signalCount;
  }

  /**
   * The first of the flags {@code entered}: on each rank, number {@code entered() + r} is raised by
   * rank r when it enters an epoch.
   *
   * @return the number
   */
  public int entered() {
    return entered;
  }

  /**
   * The kernels.
   *
   * @return by number
   */
  public List<Kernel> kernels() {
    return kernels;
  }

  /**
   * The tasks of a rank.
   *
   * @param rank the rank
   * @return its columns
   */
  public RankSchedule rank(int rank) {
    return ranks[rank];
  }

  /**
   * The tasks of all ranks.
   *
   * @return the number
   */
  public long tasks() {
    long sum = 0;
    for (RankSchedule rank : ranks) {
      sum += rank.tasks();
    }
    return sum;
  }

  /**
   * A task in words.
   *
   * @param rank its rank
   * @param task its number
   * @return rank, pool, place in the pool and kind, as {@code rank 2 gemm[7] (compute)}
   */
  public String describe(int rank, int task) {
    RankSchedule schedule = ranks[rank];
    int pool = schedule.poolOf(task);
    return "rank %d %s[%d] (%s)"
        .formatted(
            rank,
            schedule.poolName(pool),
            task - schedule.poolFirst(pool),
            schedule.kind(task).name().toLowerCase(java.util.Locale.ROOT));
  }

  /**
   * What identifies the schedule: ranks that prepared the same have the same.
   *
   * @return SHA-256 over everything above, in hex
   */
  public String digest() {
    String known = digest;
    if (known.isEmpty()) {
      known = computeDigest();
      digest = known;
    }
    return known;
  }

  private String computeDigest() {
    MessageDigest sha;
    try {
      sha = MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every Java platform has SHA-256", e);
    }
    StringBuilder head = new StringBuilder(name).append('\n');
    for (int rank = 0; rank < topology.size(); rank++) {
      head.append(topology.node(rank)).append(' ');
    }
    for (BufferSpec buffer : buffers) {
      head.append('\n').append(buffer.name()).append(buffer.use()).append(buffer.dtype());
      head.append(buffer.depth());
      for (int rank = 0; rank < topology.size(); rank++) {
        head.append(' ').append(buffer.bytes(rank));
      }
    }
    head.append('\n').append(signals).append('\n');
    for (Kernel kernel : kernels) {
      head.append(kernel.kind()).append(new TreeMap<>(kernel.attributes())).append('\n');
    }
    sha.update(head.toString().getBytes(StandardCharsets.UTF_8));
    ByteBuffer scratch = ByteBuffer.allocate(1 << 16);
    for (RankSchedule r : ranks) {
      update(sha, scratch, r.poolNames + " " + roles(r));
      sha.update(r.kind);
      for (int[] column :
          new int[][] {
            r.kernel, r.firstWait, r.firstStream, r.firstOutput, r.firstRaise, r.firstPart,
            r.partRegion, r.partSignal, r.partCount, r.partLag, r.output, r.waitSignal,
            r.waitCount, r.waitLag, r.raiseRank, r.raiseSignal, r.regionRank, r.regionBuffer,
            r.poolFirst
          }) {
        update(sha, scratch, column);
      }
      for (long[] column :
          new long[][] {r.regionOffset, r.regionRows, r.regionRowBytes, r.regionPitch}) {
        update(sha, scratch, column);
      }
    }
    return HexFormat.of().formatHex(sha.digest());
  }

  private static String roles(RankSchedule r) {
    StringBuilder text = new StringBuilder();
    for (Role role : r.roles) {
      text.append(role.name()).append(role.compute()).append(role.readyFirst());
      text.append(java.util.Arrays.toString(role.pools()));
    }
    return text.toString();
  }

  private static void update(MessageDigest sha, ByteBuffer scratch, String text) {
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    sha.update(scratch.clear().putInt(bytes.length).flip());
    sha.update(bytes);
  }

  private static void update(MessageDigest sha, ByteBuffer scratch, int[] column) {
    sha.update(scratch.clear().putInt(column.length).flip());
    for (int from = 0; from < column.length; from += scratch.capacity() / Integer.BYTES) {
      int count = Math.min(scratch.capacity() / Integer.BYTES, column.length - from);
      scratch.clear().asIntBuffer().put(column, from, count);
      sha.update(scratch.limit(count * Integer.BYTES));
    }
  }

  private static void update(MessageDigest sha, ByteBuffer scratch, long[] column) {
    for (int from = 0; from < column.length; from += scratch.capacity() / Long.BYTES) {
      int count = Math.min(scratch.capacity() / Long.BYTES, column.length - from);
      scratch.clear().asLongBuffer().put(column, from, count);
      sha.update(scratch.limit(count * Long.BYTES));
    }
  }
}
