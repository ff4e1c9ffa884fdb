package org.mkernel.transport.rdma;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.mkernel.api.DeviceException;
import org.mkernel.api.MismatchException;
import org.mkernel.api.UnavailableException;
import org.mkernel.api.UsageException;
import org.mkernel.api.spi.Transfer;
import org.mkernel.api.spi.Wire;

/** The wire over real queue pairs: needs three adapters, rxe0 to rxe2. */
@Tag("rxe")
final class RdmaWireTest {
  private static final int ROWS = 7;
  private static final int ROW_BYTES = 1000;
  private static final int PITCH = 1024;
  private static final int BLOCK = ROWS * PITCH;
  private static final long BOUND_NANOS = 60_000_000_000L;

  @BeforeAll
  static void adaptersAreThere() {
    assertThat(RdmaRanks.availability().describe()).contains("rxe0", "rxe1", "rxe2");
  }

  private static Map<String, String> options(String... more) {
    Map<String, String> all =
        new HashMap<>(Map.of("rdma.device", "rxe0,rxe1,rxe2", "rdma.retries", "3"));
    for (int i = 0; i < more.length; i += 2) {
      all.put(more[i], more[i + 1]);
    }
    return all;
  }

  private static RdmaRanks ranks(int size, String... more) {
    return new RdmaRanks(size, _ -> options(more));
  }

  /** Counts what a channel reports. */
  private static final class Count implements Wire.Completions {
    final List<Integer> completed = new ArrayList<>();
    final List<String> failures = new ArrayList<>();
    final List<Long> codes = new ArrayList<>();

    @Override
    public void completed(int transfer) {
      completed.add(transfer);
    }

    @Override
    public void failed(int transfer, String reason, long nativeCode, String remedy) {
      failures.add(reason + "; " + remedy);
      codes.add(nativeCode);
    }
  }

  @SuppressWarnings("ThreadPriorityCheck") // A hint for the one processor of the emulated machine.
  private static void await(String what, BooleanSupplier done) {
    long start = System.nanoTime();
    while (!done.getAsBoolean()) {
      assertThat(System.nanoTime() - start).as(what).isLessThan(BOUND_NANOS);
      Thread.yield();
    }
  }

  private static byte expected(int from, int block, int epoch, int i) {
    return (byte) (from * 31 + block * 7 + epoch * 3 + i * 5 + i / 251);
  }

  /** A block to each other rank, to a place of its own there. */
  private static List<Transfer> blocks(RdmaRanks ranks, int size, int rank, int perPeer) {
    List<Transfer> all = new ArrayList<>();
    for (int peer = 0; peer < size; peer++) {
      for (int b = 0; b < perPeer && peer != rank; b++) {
        int slot = rank * perPeer + b;
        all.add(
            new Transfer(
                peer,
                ranks.source[rank].address() + (long) b * ROWS * ROW_BYTES,
                ROW_BYTES,
                1,
                (long) slot * BLOCK,
                PITCH,
                ROWS,
                ROW_BYTES,
                8L * slot));
      }
    }
    return all;
  }

  private static void allToAll(int size, int perPeer, int epochs, String... more) {
    try (RdmaRanks ranks = ranks(size, more)) {
      List<RdmaChannel> channels = ranks.open(rank -> blocks(ranks, size, rank, perPeer));
      for (int epoch = 1; epoch <= epochs; epoch++) {
        for (int rank = 0; rank < size; rank++) {
          for (int i = 0; i < perPeer * ROWS * ROW_BYTES; i++) {
            int block = i / (ROWS * ROW_BYTES);
            ranks.source[rank].set(
                ValueLayout.JAVA_BYTE, i, expected(rank, block, epoch, i % (ROWS * ROW_BYTES)));
          }
        }
        exchange(channels, (size - 1) * perPeer, epoch);
        for (int from = 0; from < size; from++) {
          for (int to = 0; to < size; to++) {
            for (int b = 0; b < perPeer && from != to; b++) {
              check(ranks, from, to, b, perPeer, epoch);
            }
          }
        }
      }
    }
  }

  private static void exchange(List<RdmaChannel> channels, int transfers, int epoch) {
    Count[] counts = new Count[channels.size()];
    int[] posted = new int[channels.size()];
    Arrays.setAll(counts, _ -> new Count());
    await(
        "completion of epoch " + epoch,
        () -> {
          boolean done = true;
          for (int rank = 0; rank < counts.length; rank++) {
            while (posted[rank] < transfers && channels.get(rank).post(posted[rank], epoch)) {
              posted[rank]++;
            }
            channels.get(rank).poll(counts[rank]);
            assertThat(counts[rank].failures).isEmpty();
            done &= counts[rank].completed.size() == transfers;
          }
          return done;
        });
    for (Count count : counts) {
      assertThat(count.completed).doesNotHaveDuplicates();
    }
  }

  private static void check(RdmaRanks ranks, int from, int to, int block, int perPeer, int epoch) {
    int slot = from * perPeer + block;
    // A completion is the peer's acknowledgement: the flag has been written there.
    assertThat(RdmaRanks.flag(ranks.flags[to], slot)).isEqualTo(epoch);
    int wrong = 0;
    for (int i = 0; i < BLOCK; i++) {
      byte found = ranks.data[to].get(ValueLayout.JAVA_BYTE, (long) slot * BLOCK + i);
      int column = i % PITCH;
      byte wanted =
          column < ROW_BYTES ? expected(from, block, epoch, i / PITCH * ROW_BYTES + column) : 0;
      wrong += found == wanted ? 0 : 1;
    }
    assertThat(wrong).as("wrong bytes from %d to %d", from, to).isZero();
  }

  @Test
  void movesRowsThenTheFlag() {
    allToAll(2, 3, 5);
  }

  @Test
  void everyRankHasAQueuePairForEachOther() {
    allToAll(3, 2, 3);
  }

  @Test
  void postsInPartsWhereTheQueueIsShort() {
    allToAll(2, 4, 3, "rdma.depth", "4");
    allToAll(2, 4, 3, "rdma.depth", "5");
  }

  @Test
  void endsWithDifferentMtusAgree() {
    try (RdmaRanks ranks =
        new RdmaRanks(2, rank -> options("rdma.mtu", rank == 0 ? "512" : "4096"))) {
      List<RdmaChannel> channels = ranks.open(rank -> blocks(ranks, 2, rank, 1));
      exchange(channels, 1, 1);
    }
  }

  @Test
  void raisesFlagsWithoutData() {
    try (RdmaRanks ranks = ranks(2)) {
      Transfer raise = new Transfer(1, 0, 0, 0, 0, 0, 0, 0, 24);
      List<RdmaChannel> channels = ranks.open(rank -> rank == 0 ? List.of(raise) : List.of());
      Count count = new Count();
      assertThat(channels.getFirst().post(0, 1L << 40)).isTrue();
      await(
          "the flag",
          () -> {
            channels.getFirst().poll(count);
            channels.getLast().poll(count);
            return !count.completed.isEmpty();
          });
      assertThat(RdmaRanks.flag(ranks.flags[1], 3)).isEqualTo(1L << 40);
    }
  }

  @Test
  void queuePairInErrorFailsWhatIsInFlight() {
    try (RdmaRanks ranks = ranks(2)) {
      List<RdmaChannel> channels = ranks.open(rank -> blocks(ranks, 2, rank, 2));
      channels.getFirst().pairs().getFirst().stop();
      Count count = new Count();
      assertThat(channels.getFirst().post(0, 1)).isTrue();
      await(
          "a failure",
          () -> {
            channels.getFirst().poll(count);
            return !count.failures.isEmpty();
          });
      assertThat(count.failures.getFirst()).contains("WR_FLUSH_ERR", "had already failed");
      assertThat(count.codes.getFirst()).isEqualTo(5);
    }
  }

  @Test
  void peerInErrorIsNoticed() {
    try (RdmaRanks ranks = ranks(2, "rdma.timeout", "14")) {
      List<RdmaChannel> channels = ranks.open(rank -> blocks(ranks, 2, rank, 2));
      channels.getLast().pairs().getFirst().stop();
      Count count = new Count();
      assertThat(channels.getFirst().post(0, 1)).isTrue();
      await(
          "a failure",
          () -> {
            channels.getFirst().poll(count);
            return !count.failures.isEmpty();
          });
      assertThat(count.failures.getFirst()).contains("RETRY_EXC_ERR", "rdma.timeout");
    }
  }

  /** Drops all packets to rxe1, or none. */
  private static void blackout(boolean begins) throws Exception {
    List<String> command =
        List.of(
            "tc", "qdisc", begins ? "add" : "del", "dev", "rp1", "root", "netem", "loss", "100%");
    assertThat(new ProcessBuilder(command).inheritIO().start().waitFor()).isZero();
  }

  @Test
  void linkThatIsCutEndsInAFailure() throws Exception {
    try (RdmaRanks ranks = ranks(2, "rdma.timeout", "14")) {
      List<RdmaChannel> channels = ranks.open(rank -> blocks(ranks, 2, rank, 2));
      Count count = new Count();
      blackout(true);
      try {
        assertThat(channels.getFirst().post(0, 1)).isTrue();
        assertThat(channels.getFirst().post(1, 1)).isTrue();
        await(
            "two failures",
            () -> {
              channels.getFirst().poll(count);
              return count.failures.size() >= 2;
            });
      } finally {
        blackout(false);
      }
      assertThat(count.codes.getFirst()).isEqualTo(12);
      assertThat(count.codes.getLast()).isEqualTo(5);
      assertThat(count.completed).isEmpty();
    }
  }

  @Test
  void linkThatComesBackInTimeIsSurvived() throws Exception {
    try (RdmaRanks ranks = ranks(2, "rdma.timeout", "18", "rdma.retries", "7")) {
      List<RdmaChannel> channels = ranks.open(rank -> blocks(ranks, 2, rank, 1));
      Count count = new Count();
      blackout(true);
      try {
        assertThat(channels.getFirst().post(0, 1)).isTrue();
        long start = System.nanoTime();
        await(
            "half a second",
            () -> {
              channels.getFirst().poll(count);
              return System.nanoTime() - start > 500_000_000L;
            });
        assertThat(count.completed).isEmpty();
      } finally {
        blackout(false);
      }
      await(
          "completion",
          () -> {
            channels.getFirst().poll(count);
            return !count.completed.isEmpty();
          });
      assertThat(count.failures).isEmpty();
      assertThat(RdmaRanks.flag(ranks.flags[1], 0)).isEqualTo(1);
    }
  }

  @Test
  void memoryThatIsGoneThereIsAnAccessError() {
    try (RdmaRanks ranks = ranks(2)) {
      List<RdmaChannel> channels = ranks.open(rank -> blocks(ranks, 2, rank, 1));
      channels.getLast().endRegistrations();
      Count count = new Count();
      assertThat(channels.getFirst().post(0, 1)).isTrue();
      await(
          "a failure",
          () -> {
            channels.getFirst().poll(count);
            return !count.failures.isEmpty();
          });
      assertThat(count.failures.getFirst()).contains("REM_ACCESS_ERR", "a wrong key or bounds");
      assertThat(count.codes.getFirst()).isEqualTo(10);
    }
  }

  @Test
  void nothingMovesAfterAbort() {
    try (RdmaRanks ranks = ranks(2)) {
      List<RdmaChannel> channels = ranks.open(rank -> blocks(ranks, 2, rank, 1));
      channels.forEach(Wire.Channel::abort);
      assertThat(channels.getFirst().post(0, 2)).isFalse();
      assertThat(channels.getFirst().poll(new Count())).isZero();
    }
  }

  @Test
  void allRanksHearOfTheOneThatCannotConnect() {
    assertThatThrownBy(
            () -> new RdmaRanks(2, rank -> rank == 0 ? options() : options("rdma.gid-index", "77")))
        .isInstanceOf(UnavailableException.class)
        .hasMessageContaining("rank 1 can't connect by RDMA: option rdma.gid-index is 77")
        .satisfies(e -> assertThat(e.getSuppressed()).hasOnlyElementsOfType(UsageException.class));
    assertThatThrownBy(() -> ranks(2, "rdma.device", "mlx5_0"))
        .isInstanceOf(UsageException.class)
        .hasMessageContaining("mlx5_0")
        .hasMessageContaining("rxe0");
    assertThatThrownBy(() -> ranks(2, "rdma.pkey", "0x1234"))
        .isInstanceOf(UnavailableException.class)
        .hasMessageContaining("0xffff");
  }

  @Test
  void refusesTransfersAndMemoryThatDoNotFit() {
    try (RdmaRanks ranks = ranks(2)) {
      long end = RdmaRanks.DATA_BYTES;
      assertThatThrownBy(() -> ranks.open(rank -> List.of(put(ranks, rank, end - 64, 128))))
          .isInstanceOf(MismatchException.class)
          .hasMessageContaining("its bytes end outside");
      assertThatThrownBy(
              () -> ranks.open(rank -> List.of(new Transfer(1 - rank, 4096, 8, 1, 0, 8, 1, 8, 0))))
          .isInstanceOf(DeviceException.class)
          .hasMessageContaining("registering 8 bytes at 0x1000");
      ranks.open(rank -> List.of(put(ranks, rank, end - 64, 64)));
    }
  }

  private static Transfer put(RdmaRanks ranks, int rank, long offset, long bytes) {
    return new Transfer(
        1 - rank, ranks.source[rank].address(), bytes, 1, offset, bytes, 1, bytes, 0);
  }
}
