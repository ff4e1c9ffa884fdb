package org.mkernel.runtime;

import static java.nio.file.StandardOpenOption.CREATE_NEW;
import static java.nio.file.StandardOpenOption.READ;
import static java.nio.file.StandardOpenOption.SPARSE;
import static java.nio.file.StandardOpenOption.WRITE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.mkernel.api.MismatchException;
import org.mkernel.api.UnavailableException;
import org.mkernel.api.UsageException;
import org.mkernel.api.schedule.Topology;
import org.mkernel.api.spi.Abort;
import org.mkernel.api.spi.Span;
import org.mkernel.api.spi.Transfer;
import org.mkernel.api.spi.Wire;

final class EmulatedWireTest {
  private static final int ROWS = 5;
  private static final int ROW_BYTES = 200;
  private static final int PITCH = 256;
  private static final int BLOCK = 2048;
  private static final int PER_PEER = 3;
  private static final int VARIANTS = 2;
  private static final byte SPOILT = (byte) 0xEE;

  /** Everybody sends blocks to everybody, in slots of depth 2, through FIFO and proxy. */
  private static final class AllToAll implements AutoCloseable {
    final int size;
    final int count;
    final EmulatedWorld world;
    final Abort abort = new Abort();
    final Proxy proxy = new Proxy(abort);
    final List<ProxyQueue> queues = new ArrayList<>();
    final List<CommandFifo> fifos = new ArrayList<>();
    boolean sawPartial;
    boolean sawOvertaking;

    AllToAll(int size, Map<String, String> options) {
      this.size = size;
      this.count = (size - 1) * PER_PEER;
      this.world = new EmulatedWorld(size, options);
      List<Wire.Channel> channels = world.open(this::transfers);
      for (int r = 0; r < size; r++) {
        int rank = r;
        int[] peers = new int[count];
        long[] done = new long[count];
        Arrays.setAll(peers, t -> peer(rank, t));
        Arrays.setAll(done, t -> world.done[rank].address() + 8L * t);
        CommandFifo fifo = world.fifo(32);
        ProxyQueue queue =
            new ProxyQueue(
                rank, "test", fifo, channels.get(r), VARIANTS, peers, done, t -> "put " + t);
        proxy.register(queue);
        queues.add(queue);
        fifos.add(fifo);
      }
    }

    int peer(int rank, int transfer) {
      int other = transfer / PER_PEER;
      return other < rank ? other : other + 1;
    }

    /** The slot of a rank in the memory of the one it sends to; also the number of its flag. */
    int slot(int from, int transfer) {
      return from * PER_PEER + transfer % PER_PEER;
    }

    long target(int from, int transfer, int variant) {
      return (long) (variant * size * PER_PEER + slot(from, transfer)) * BLOCK;
    }

    private List<Transfer> transfers(int rank) {
      List<Transfer> all = new ArrayList<>();
      for (int t = 0; t < count; t++) {
        for (int v = 0; v < VARIANTS; v++) {
          all.add(
              new Transfer(
                  peer(rank, t),
                  world.source[rank].address() + (long) t * BLOCK,
                  ROW_BYTES,
                  1,
                  target(rank, t, v),
                  PITCH,
                  ROWS,
                  ROW_BYTES,
                  8L * slot(rank, t)));
        }
      }
      return all;
    }

    static byte expected(int rank, int transfer, long epoch, int i) {
      int value = (int) (rank * 7 + transfer * 13 + epoch * 31 + i * 3L) & 0x7f;
      return (byte) value;
    }

    void epoch(long epoch) {
      for (int rank = 0; rank < size; rank++) {
        queues.get(rank).enter(epoch);
        for (int t = 0; t < count; t++) {
          for (int i = 0; i < ROWS * ROW_BYTES; i++) {
            world.source[rank].set(
                ValueLayout.JAVA_BYTE, (long) t * BLOCK + i, expected(rank, t, epoch, i));
          }
          assertThat(fifos.get(rank).offer(Command.encode(t, 0, epoch))).isTrue();
        }
      }
      boolean[][] spoilt = new boolean[size][count];
      long start = System.nanoTime();
      while (!queues.stream().allMatch(q -> q.isComplete(epoch))) {
        assertThat(abort.cause()).isEmpty();
        assertThat(System.nanoTime() - start).isLessThan(20_000_000_000L);
        proxy.doWork();
        for (int rank = 0; rank < size; rank++) {
          for (int t = 0; t < count; t++) {
            look(rank, t, epoch, spoilt);
          }
        }
      }
      for (boolean[] row : spoilt) {
        assertThat(row).doesNotContain(false);
      }
    }

    private void look(int rank, int t, long epoch, boolean[][] spoilt) {
      int peer = peer(rank, t);
      int right = right(rank, t, epoch);
      boolean done = EmulatedWorld.signal(world.done[rank], t) == epoch;
      if (EmulatedWorld.signal(world.flags[peer], slot(rank, t)) == epoch) {
        assertThat(right).isEqualTo(ROWS * ROW_BYTES);
        sawOvertaking |=
            t % PER_PEER > 0 && EmulatedWorld.signal(world.flags[peer], slot(rank, t - 1)) != epoch;
      } else {
        assertThat(done).isFalse();
        // Its last byte is there and others are not.
        sawPartial |= byteAt(rank, t, epoch, ROWS * ROW_BYTES - 1) && right < ROWS * ROW_BYTES / 2;
      }
      if (done && !spoilt[rank][t]) {
        spoilt[rank][t] = true;
        world.source[rank].asSlice((long) t * BLOCK, BLOCK).fill(SPOILT);
      }
    }

    private boolean byteAt(int rank, int t, long epoch, int i) {
      long at =
          target(rank, t, (int) (epoch % VARIANTS)) + (long) i / ROW_BYTES * PITCH + i % ROW_BYTES;
      return EmulatedWorld.at(world.data[peer(rank, t)], at) == expected(rank, t, epoch, i);
    }

    private int right(int rank, int t, long epoch) {
      int right = 0;
      for (int i = 0; i < ROWS * ROW_BYTES; i++) {
        right += byteAt(rank, t, epoch, i) ? 1 : 0;
      }
      return right;
    }

    @Override
    public void close() {
      world.close();
    }
  }

  private static AllToAll run(int size, Map<String, String> options) {
    try (AllToAll ranks = new AllToAll(size, options)) {
      for (long epoch = 1; epoch <= 4; epoch++) {
        ranks.epoch(epoch);
      }
      for (ProxyQueue queue : ranks.queues) {
        assertThat(queue.completed()).isEqualTo(4L * ranks.count);
      }
      return ranks;
    }
  }

  @Test
  void movesDataThenFlagThenDone() {
    AllToAll ranks = run(3, Map.of());
    assertThat(ranks.sawOvertaking).isFalse();
    run(2, Map.of("emulated.depth", "1"));
    run(3, Map.of("emulated.bandwidth", "50000000", "emulated.latency", "50000"));
    run(3, Map.of("emulated.bandwidth", "50000000", "emulated.depth", "2"));
  }

  @Test
  void isRightUnderEveryAdversary() {
    int partial = 0;
    int overtaking = 0;
    for (int seed = 1; seed <= 200; seed++) {
      AllToAll ranks = run(2 + seed % 2, Map.of("emulated.adversarial", Integer.toString(seed)));
      partial += ranks.sawPartial ? 1 : 0;
      overtaking += ranks.sawOvertaking ? 1 : 0;
    }
    assertThat(partial).as("runs with bytes out of order").isGreaterThan(20);
    assertThat(overtaking).as("runs in which a transfer overtook another").isGreaterThan(20);
  }

  @Test
  void isRightUnderAShapedAdversaryWithAShortQueue() {
    for (int seed = 1; seed <= 10; seed++) {
      run(
          3,
          Map.of(
              "emulated.adversarial",
              Integer.toString(seed),
              "emulated.depth",
              "2",
              "emulated.latency",
              "20000",
              "emulated.bandwidth",
              "100000000"));
    }
  }

  private static Transfer put(EmulatedWorld world, int from, int peer, long bytes, int flag) {
    return new Transfer(
        peer, world.source[from].address(), bytes, 1, 0, bytes, 1, bytes, 8L * flag);
  }

  /** Counts completions; a failure is one of the test. */
  private static final class Count implements Wire.Completions {
    int completed;

    @Override
    public void completed(int transfer) {
      completed++;
    }

    @Override
    public void failed(int transfer, String reason, long nativeCode, String remedy) {
      throw new AssertionError(reason);
    }
  }

  /**
   * Times are never below the least. What else runs on this machine makes them longer, so that one
   * of many within the bound is enough.
   */
  private static void assertTime(Wire.Channel channel, int transfers, long least, long most) {
    long best = Long.MAX_VALUE;
    for (int epoch = 1; epoch <= 100 && best > most; epoch++) {
      best = Math.min(best, time(channel, transfers, epoch));
    }
    assertThat(best).isBetween(least, most);
  }

  /** Posts all, in order, and returns the nanoseconds until the last has completed. */
  private static long time(Wire.Channel channel, int transfers, long epoch) {
    Count count = new Count();
    long start = System.nanoTime();
    int posted = 0;
    while (count.completed < transfers) {
      if (posted < transfers && channel.post(posted, epoch)) {
        posted++;
      }
      channel.poll(count);
    }
    return System.nanoTime() - start;
  }

  @Test
  void shapesBandwidthPerRankAndLatencyPerLink() {
    long bytes = 256 << 10;
    int transfers = 16;
    try (EmulatedWorld world = new EmulatedWorld(3, Map.of("emulated.bandwidth", "100000000"))) {
      List<Wire.Channel> channels =
          world.open(rank -> {
            List<Transfer> all = new ArrayList<>();
            for (int t = 0; t < transfers; t++) {
              all.add(put(world, rank, (rank + 1 + t % 2) % 3, bytes, t));
            }
            return all;
          });
      long nanos = transfers * bytes * 10;
      assertTime(channels.getFirst(), transfers, nanos * 9 / 10, nanos * 13 / 10);
    }
    long latency = 2_000_000;
    try (EmulatedWorld world = new EmulatedWorld(2, Map.of("emulated.latency", "" + latency))) {
      List<Wire.Channel> channels = world.open(r -> List.of(put(world, r, 1 - r, 64, 0)));
      // There and back: a completion is the peer's answer.
      assertTime(channels.getFirst(), 1, 2 * latency, 2 * latency * 13 / 10);
    }
  }

  @Test
  void slowRankIsSlowByItsFactor() {
    Map<String, String> options =
        Map.of("emulated.bandwidth", "1000000000", "emulated.fault", "slow:1:10");
    try (EmulatedWorld world = new EmulatedWorld(2, options)) {
      List<Wire.Channel> channels = world.open(r -> List.of(put(world, r, 1 - r, 1 << 20, 0)));
      assertTime(channels.get(0), 1, 1_000_000L, 6_000_000L);
      assertTime(channels.get(1), 1, 10_000_000L, 13_000_000L);
    }
  }

  @Test
  void movesNothingAfterAbort() {
    try (EmulatedWorld world = new EmulatedWorld(2, Map.of())) {
      List<Wire.Channel> channels = world.open(r -> List.of(put(world, r, 1 - r, 64, 0)));
      assertThat(channels.getFirst().post(0, 1)).isTrue();
      channels.getFirst().abort();
      assertThat(channels.getFirst().poll(new Count())).isZero();
      assertThat(channels.getFirst().post(0, 2)).isFalse();
      assertThat(EmulatedWorld.signal(world.flags[1], 0)).isZero();
    }
  }

  /** Rows far apart, in a file with holes: before, across and behind 2 and 4 GiB. */
  @ParameterizedTest
  @ValueSource(strings = {"0", "3"})
  void reachesBeyondFourGibibytes(String adversary, @TempDir Path folder) throws IOException {
    long gibibyte = 1L << 30;
    long[] offsets = {2 * gibibyte - 64, 4 * gibibyte - 64, gibibyte};
    long[] pitches = {128, 128, 4 * gibibyte};
    Map<String, String> options = Map.of("emulated.adversarial", adversary);
    try (Arena arena = Arena.ofShared();
        FileChannel file =
            FileChannel.open(folder.resolve("data"), CREATE_NEW, SPARSE, READ, WRITE);
        EmulatedWorld world = new EmulatedWorld(2, options)) {
      world.data[1] = file.map(FileChannel.MapMode.READ_WRITE, 0, 6 * gibibyte, arena);
      List<Transfer> transfers = new ArrayList<>();
      for (int i = 0; i < offsets.length; i++) {
        transfers.add(
            new Transfer(
                1, world.source[0].address(), 128, 1, offsets[i], pitches[i], 2, 128, 8L * i));
      }
      Wire.Channel channel =
          world.open(rank -> rank == 0 ? transfers : List.<Transfer>of()).getFirst();
      for (int i = 0; i < 256; i++) {
        world.source[0].set(ValueLayout.JAVA_BYTE, i, (byte) (i + 1));
      }
      time(channel, offsets.length, 1);
      for (int t = 0; t < offsets.length; t++) {
        assertThat(EmulatedWorld.signal(world.flags[1], t)).isEqualTo(1);
        for (int i = 0; i < 256; i++) {
          long at = offsets[t] + i / 128 * pitches[t] + i % 128;
          assertThat(EmulatedWorld.at(world.data[1], at)).isEqualTo((byte) (i + 1));
        }
      }
    }
  }

  @Test
  void raisesFlagsWithoutData() {
    try (EmulatedWorld world = new EmulatedWorld(2, Map.of("emulated.adversarial", "5"))) {
      List<Wire.Channel> channels =
          world.open(r -> List.of(new Transfer(1 - r, 0, 0, 0, 0, 0, 0, 0, 24)));
      time(channels.getFirst(), 1, 1L << 40);
      assertThat(EmulatedWorld.signal(world.flags[1], 3)).isEqualTo(1L << 40);
    }
  }

  @Test
  void raisesOfOneFlagKeepTheirOrder() {
    for (int seed = 1; seed <= 50; seed++) {
      Map<String, String> options = Map.of("emulated.adversarial", Integer.toString(seed));
      try (EmulatedWorld world = new EmulatedWorld(2, options)) {
        Wire.Channel channel = world.open(r -> List.of(put(world, r, 1 - r, 256, 0))).getFirst();
        for (long epoch = 1; epoch <= 20; epoch++) {
          assertThat(channel.post(0, epoch)).isTrue();
        }
        Count count = new Count();
        long seen = 0;
        while (count.completed < 20) {
          channel.poll(count);
          long flag = EmulatedWorld.signal(world.flags[1], 0);
          assertThat(flag).isGreaterThanOrEqualTo(seen);
          seen = flag;
        }
        assertThat(seen).isEqualTo(20);
      }
    }
  }

  @Test
  void refusesTransfersThatDoNotFit() {
    long end = EmulatedWorld.DATA_BYTES;
    assertThatThrownBy(() -> open(1, end - 64, 64, 2, 64, 0))
        .isInstanceOf(MismatchException.class)
        .hasMessageContaining("transfer 0 of test from rank 0 to rank 1");
    assertThatThrownBy(() -> open(1, Long.MAX_VALUE - 10, 64, 1, 64, 0))
        .isInstanceOf(MismatchException.class);
    assertThatThrownBy(() -> open(1, 0, Long.MAX_VALUE / 2, 3, 64, 0))
        .isInstanceOf(MismatchException.class);
    assertThatThrownBy(() -> open(2, 0, 64, 1, 64, 0)).isInstanceOf(MismatchException.class);
    assertThatThrownBy(() -> open(1, 0, 64, 1, 64, EmulatedWorld.FLAG_BYTES))
        .isInstanceOf(MismatchException.class);
    assertThatThrownBy(() -> open(1, 0, 64, 1, 64, 4)).isInstanceOf(UsageException.class);
    assertThatThrownBy(() -> open(1, 0, 63, 2, 64, 0)).isInstanceOf(UsageException.class);
    assertThatThrownBy(() -> open(1, -8, 64, 1, 64, 0)).isInstanceOf(UsageException.class);
    open(1, end - 128, 64, 2, 64, EmulatedWorld.FLAG_BYTES - 8);
  }

  private static void open(
      int span, long offset, long pitch, long rows, long rowBytes, long flagOffset) {
    try (EmulatedWorld world = new EmulatedWorld(2, Map.of())) {
      world.open(rank ->
          List.of(
              new Transfer(
                  1 - rank,
                  world.source[rank].address(),
                  64,
                  span,
                  offset,
                  pitch,
                  rows,
                  rowBytes,
                  flagOffset)));
    }
  }

  @Test
  void knowsPeersOfOtherProcessesAndVersions() {
    List<Span> spans = List.of(new Span(4096, 64));
    assertThat(EmulatedHandle.decode(1, EmulatedHandle.encode(spans))).isEqualTo(spans);
    byte[] foreign = EmulatedHandle.encode(UUID.randomUUID(), 4711, spans);
    assertThatThrownBy(() -> EmulatedHandle.decode(1, foreign))
        .isInstanceOfSatisfying(
            UnavailableException.class,
            e -> {
              assertThat(e).hasMessageContaining("4711");
              assertThat(e.failure().peer()).hasValue(1);
              assertThat(e.failure().remedy()).isPresent();
            });
    byte[] good = EmulatedHandle.encode(spans);
    for (int length = 0; length < good.length; length++) {
      byte[] cut = Arrays.copyOf(good, length);
      assertThatThrownBy(() -> EmulatedHandle.decode(1, cut)).isInstanceOf(MismatchException.class);
    }
    good[7]++;
    assertThatThrownBy(() -> EmulatedHandle.decode(1, good)).hasMessageContaining("version 2");
  }

  @Test
  void refusesOptionsThatItDoesNotKnow() {
    for (Map<String, String> bad :
        List.of(
            Map.of("emulated.bandwith", "1"),
            Map.of("emulated.bandwidth", "fast"),
            Map.of("emulated.bandwidth", "-1"),
            Map.of("emulated.latency", "1e6"),
            Map.of("emulated.depth", "0"),
            Map.of("emulated.depth", "65537"),
            Map.of("emulated.adversarial", "-3"))) {
      assertThatThrownBy(() -> EmulatedOptions.parse(bad, 4))
          .isInstanceOf(UsageException.class)
          .hasMessageContaining(bad.keySet().iterator().next());
    }
    assertThat(EmulatedOptions.parse(Map.of("deadline", "3"), Topology.of(2, 1).size()))
        .isEqualTo(new EmulatedOptions(0, 0, EmulatedOptions.DEFAULT_DEPTH, 0, List.of()));
  }
}
