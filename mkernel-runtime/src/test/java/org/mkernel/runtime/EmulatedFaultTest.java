package org.mkernel.runtime;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.mkernel.api.Failure;
import org.mkernel.api.PeerLostException;
import org.mkernel.api.UsageException;
import org.mkernel.api.spi.Abort;
import org.mkernel.api.spi.Transfer;

final class EmulatedFaultTest {
  @Test
  void readsFaults() {
    assertThat(parse("none")).isEmpty();
    assertThat(parse("lost-link:0-1@5,error:2-0@0,slow:1:2.5,overrun:3@7"))
        .containsExactly(
            new EmulatedFault.LostLink(0, 1, 5),
            new EmulatedFault.ErrorCompletion(2, 0, 0),
            new EmulatedFault.Slow(1, 2.5),
            new EmulatedFault.Overrun(3, 7));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        "lost-link",
        "lost-link:0-1",
        "lost-link:0-1@",
        "lost-link:0-1@-1",
        "lost-link:0-4@1",
        "lost-link:1-1@1",
        "lost-link:0-1@1 ",
        "lost-link:0-1@1,",
        "error:0-1@99999999999999999999",
        "slow:1:0.5",
        "slow:4:2",
        "slow:1:NaN",
        "overrun:0-1@1",
        "fire:0-1@1"
      })
  void refusesWhatItDoesNotKnow(String text) {
    assertThatThrownBy(() -> parse(text))
        .isInstanceOf(UsageException.class)
        .hasMessageContaining("emulated.fault")
        .hasMessageContaining("lost-link:FROM-TO@N");
  }

  private static List<EmulatedFault> parse(String text) {
    return EmulatedOptions.parse(Map.of("emulated.fault", text), 4).faults();
  }

  /** Rank 0 sends to ranks 1 and 2 in turns, one epoch after the other. */
  private static final class Sender implements AutoCloseable {
    final EmulatedWorld world;
    final Abort abort = new Abort();
    final Proxy proxy = new Proxy(abort);
    final ProxyQueue queue;
    final CommandFifo fifo;

    Sender(Map<String, String> options) {
      world = new EmulatedWorld(3, options);
      var channels = world.open(rank -> rank > 0 ? List.of() : List.of(put(1), put(2)));
      fifo = world.fifo(16);
      queue =
          new ProxyQueue(
              0,
              "broadcast",
              fifo,
              channels.getFirst(),
              1,
              new int[] {1, 2},
              new long[2],
              t -> "put of tile " + t);
      proxy.register(queue);
    }

    private Transfer put(int peer) {
      return new Transfer(peer, world.source[0].address(), 64, 1, 0, 64, 1, 64, 0);
    }

    /** Runs an epoch for as long as something may happen. */
    void epoch(long epoch) {
      queue.enter(epoch);
      assertThat(fifo.offer(Command.encode(0, 0, epoch))).isTrue();
      assertThat(fifo.offer(Command.encode(1, 0, epoch))).isTrue();
      long start = System.nanoTime();
      while (!queue.isComplete(epoch)
          && !abort.isSet()
          && System.nanoTime() - start < 50_000_000L) {
        proxy.doWork();
      }
    }

    long flag(int rank) {
      return EmulatedWorld.signal(world.flags[rank], 0);
    }

    @Override
    public void close() {
      world.close();
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"0", "7"})
  void lostLinkIsSilentAndOthersAreNot(String adversary) {
    try (Sender sender =
        new Sender(
            Map.of("emulated.fault", "lost-link:0-1@2", "emulated.adversarial", adversary))) {
      for (long epoch = 1; epoch <= 3; epoch++) {
        sender.epoch(epoch);
      }
      assertThat(sender.abort.cause()).isEmpty();
      assertThat(sender.flag(1)).isEqualTo(2);
      assertThat(sender.flag(2)).isEqualTo(3);
      assertThat(sender.queue.completed()).isEqualTo(5);
      assertThat(sender.queue.isComplete(3)).isFalse();
      assertThat(sender.queue.pendingPeers()).containsExactly(1);
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"0", "7"})
  void errorCompletionNamesThePeer(String adversary) {
    try (Sender sender =
        new Sender(Map.of("emulated.fault", "error:0-2@1", "emulated.adversarial", adversary))) {
      sender.epoch(1);
      assertThat(sender.queue.isComplete(1)).isTrue();
      sender.epoch(2);
      Failure failure = lost(sender);
      assertThat(failure.peer()).hasValue(2);
      assertThat(failure.nativeCode()).hasValue(12);
      assertThat(failure.task()).hasValue("put of tile 1");
      assertThat(sender.flag(2)).isEqualTo(1);
    }
  }

  @Test
  void overrunEndsTheRank() {
    try (Sender sender = new Sender(Map.of("emulated.fault", "overrun:0@3"))) {
      sender.epoch(1);
      assertThat(sender.abort.cause()).isEmpty();
      sender.epoch(2);
      // Of two queue pairs either may be the one whose completion is lost.
      assertThat(lost(sender).peer().orElseThrow()).isBetween(1, 2);
      assertThat(sender.abort.cause().orElseThrow()).hasMessageContaining("overrun");
    }
  }

  @Test
  void faultsOfOtherRanksDoNothing() {
    try (Sender sender =
        new Sender(Map.of("emulated.fault", "error:1-2@0,overrun:2@0,lost-link:2-1@0"))) {
      sender.epoch(1);
      assertThat(sender.queue.isComplete(1)).isTrue();
    }
  }

  private static Failure lost(Sender sender) {
    assertThat(sender.abort.cause()).containsInstanceOf(PeerLostException.class);
    Failure failure = sender.abort.cause().orElseThrow().failure();
    assertThat(failure.rank()).hasValue(0);
    assertThat(failure.operation()).hasValue("broadcast");
    assertThat(failure.remedy()).isPresent();
    return failure;
  }
}
