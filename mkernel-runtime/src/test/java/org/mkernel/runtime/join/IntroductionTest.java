package org.mkernel.runtime.join;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.mkernel.api.Config;
import org.mkernel.api.Failure;
import org.mkernel.api.MKernelException;
import org.mkernel.api.MismatchException;
import org.mkernel.api.PeerLostException;
import org.mkernel.api.UnavailableException;
import org.mkernel.api.UsageException;
import org.mkernel.api.spi.Exchange;

/** Ranks that a caller's exchange ties together, over exchanges good and bad. */
final class IntroductionTest {
  private static final Config CONFIG =
      Config.defaults().option("join-deadline", "30").option("deadline", "10");

  /** An exchange between threads. */
  private static final class Table {
    private final byte[][] parts;
    private int missing;
    private CompletableFuture<List<byte[]>> round = new CompletableFuture<>();

    Table(int size) {
      parts = new byte[size][];
      missing = size;
    }

    Exchange of(int rank) {
      return contribution -> {
        try {
          return give(rank, contribution).get();
        } catch (InterruptedException | ExecutionException e) {
          throw new IllegalStateException(e);
        }
      };
    }

    private synchronized CompletableFuture<List<byte[]>> give(int rank, byte[] contribution) {
      CompletableFuture<List<byte[]>> own = round;
      parts[rank] = contribution;
      if (--missing == 0) {
        own.complete(List.of(parts.clone()));
        round = new CompletableFuture<>();
        missing = parts.length;
      }
      return own;
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 5})
  void ranksFindOneAnother(int size) throws Exception {
    Table table = new Table(size);
    List<CompletableFuture<byte[]>> keys = new ArrayList<>();
    for (int i = 0; i < size; i++) {
      int rank = i;
      CompletableFuture<byte[]> key = new CompletableFuture<>();
      keys.add(key);
      Thread.ofPlatform()
          .start(() -> {
            Introduction introduction = Introduction.by(table.of(rank), CONFIG);
            try (Membership membership = introduction.meet()) {
              assertThat(introduction.launch().rank()).isEqualTo(rank);
              assertThat(introduction.launch().size()).isEqualTo(size);
              assertThat(introduction.launch().launcher()).isEqualTo("exchange");
              assertThat(membership.hasSecret()).isTrue();
              assertThat(membership.address().isLoopbackAddress()).isTrue();
              assertThat(membership.allGather(("of " + rank).getBytes(UTF_8)))
                  .element(size - 1)
                  .isEqualTo(("of " + (size - 1)).getBytes(UTF_8));
              membership.leave();
              key.complete(membership.key("test"));
            } catch (Throwable e) {
              key.completeExceptionally(e);
            }
          });
    }
    for (CompletableFuture<byte[]> key : keys) {
      assertThat(key.get(1, TimeUnit.MINUTES)).isEqualTo(keys.getFirst().get());
    }
  }

  @Test
  void oneRankIsAWorld() {
    Launch launch = Introduction.by(List::of, CONFIG).launch();
    assertThat(launch.rank()).isZero();
    assertThat(launch.size()).isOne();
  }

  /**
   * An exchange that is not one.
   *
   * @param words of the exception
   * @param returns what it returns to a rank that gave its part
   */
  record Bad(String words, Function<byte[], List<byte[]>> returns) {
    @Override
    public String toString() {
      return words;
    }
  }

  private static byte[] patched(byte[] part, int at, int value) {
    byte[] copy = part.clone();
    ByteBuffer.wrap(copy).putInt(at, value);
    return copy;
  }

  static Stream<Bad> bad() {
    return Stream.of(
        new Bad("the parts of no ranks", own -> null),
        new Bad("the parts of 0 ranks", own -> List.of()),
        new Bad("the parts of 70000 ranks", own -> Collections.nCopies(70_000, own)),
        new Bad("null for rank 1", own -> Arrays.asList(own, null)),
        new Bad("40000 bytes for rank 1", own -> List.of(own, new byte[40_000])),
        new Bad("is not among them", own -> List.of(Arrays.copyOf(own, own.length - 1))),
        new Bad("is not among them", own -> List.of(new byte[0])),
        new Bad("twice, as of ranks 0 and 1", own -> List.of(own, own)),
        new Bad(
            "ranks 1 and 2 of the exchange gave the same",
            own -> {
              byte[] other = Introduction.card();
              return List.of(own, other, other);
            }),
        new Bad("0 bytes of rank 1 are nothing", own -> List.of(own, new byte[0])),
        new Bad("9 bytes of rank 0 are nothing", own -> List.of(new byte[9], own)),
        new Bad("12 bytes of rank 1 are nothing", own -> List.of(own, Arrays.copyOf(own, 12))));
  }

  @ParameterizedTest
  @MethodSource("bad")
  void whatIsNoExchangeIsSaidAtOnce(Bad bad) {
    Throwable thrown =
        catchThrowable(() -> Introduction.by(own -> bad.returns().apply(own), CONFIG));
    assertThat(thrown).isInstanceOf(UsageException.class).hasMessageContaining(bad.words());
    assertThat(((MKernelException) thrown).failure().remedy().orElseThrow())
        .contains("ordered by rank");
  }

  @Test
  void anotherVersionIsAMismatchThatNamesTheRank() {
    assertThatThrownBy(() ->
            Introduction.by(
                own -> List.of(own, patched(Introduction.card(), Integer.BYTES, 9)), CONFIG))
        .isInstanceOf(MismatchException.class)
        .hasMessage("rank 1 introduces itself in version 9; this rank speaks 1");
  }

  @Test
  void whatTheExchangeThrowsIsTheCause() {
    IllegalStateException cause = new IllegalStateException("the bus is gone");
    assertThatThrownBy(() ->
            Introduction.by(
                own -> {
                  throw cause;
                },
                CONFIG))
        .isInstanceOf(UnavailableException.class)
        .hasMessageContaining("the bus is gone")
        .hasCause(cause);
    assertThatThrownBy(() ->
            Introduction.by(
                own -> {
                  throw new PeerLostException("rank 7 is late", Failure.UNKNOWN.withPeer(7));
                },
                CONFIG))
        .isInstanceOf(PeerLostException.class)
        .hasMessage("rank 7 is late");
  }

  @Test
  void anExchangeThatNeverReturnsIsInterruptedAtTheDeadline() throws Exception {
    CountDownLatch interrupted = new CountDownLatch(1);
    long start = System.nanoTime();
    assertThatThrownBy(() ->
            Introduction.by(
                own -> {
                  try {
                    new CountDownLatch(1).await();
                  } catch (InterruptedException e) {
                    interrupted.countDown();
                  }
                  return List.of(own);
                },
                CONFIG.option("join-deadline", "0.2")))
        .isInstanceOf(PeerLostException.class)
        .hasMessageContaining("did not return within 0.2 s");
    assertThat(System.nanoTime() - start).isLessThan(TimeUnit.MILLISECONDS.toNanos(1200));
    assertThat(interrupted.await(1, TimeUnit.MINUTES)).isTrue();
  }

  @ParameterizedTest
  @ValueSource(strings = {"rank", "world-size"})
  void aSettingThatSaysAnotherThingIsRefused(String option) {
    assertThatThrownBy(() -> Introduction.by(List::of, CONFIG.option(option, "5")))
        .isInstanceOf(UsageException.class)
        .hasMessageContaining("option %s is \"5\", but the exchange", option);
  }

  @ParameterizedTest
  @ValueSource(strings = {"2", "-1", "x", ""})
  void aNodeThatIsNoneIsRefused(String node) {
    assertThatThrownBy(() ->
            Introduction.by(own -> List.of(own, Introduction.card()), CONFIG.option("node", node)))
        .isInstanceOf(UsageException.class)
        .hasMessageContaining("from 0 to 1 is needed");
  }

  /** Joins as rank 1 of two, where rank 0 says given words in the second round. */
  private static Throwable join(UnaryOperator<List<byte[]>> second) {
    boolean[] introduced = new boolean[1];
    Exchange exchange =
        own -> {
          List<byte[]> parts = List.of(introduced[0] ? new byte[0] : Introduction.card(), own);
          return introduced[0] ? second.apply(parts) : parts;
        };
    Introduction introduction = Introduction.by(exchange, CONFIG.option("join-deadline", "0.3"));
    introduced[0] = true;
    return catchThrowable(introduction::meet);
  }

  private static byte[] invitation() {
    return ByteBuffer.allocate(1 + 4 + 32 + 1 + 1 + 4)
        .put((byte) 1)
        .putInt(1) // Nobody listens on that port.
        .put(new byte[32])
        .put((byte) 1)
        .put((byte) 4)
        .put(new byte[] {127, 0, 0, 1})
        .array();
  }

  @Test
  void whatRank0SaysIsCheckedToTheLastByte() {
    byte[] whole = invitation();
    for (int length = 0; length < whole.length; length++) {
      byte[] words = Arrays.copyOf(whole, length);
      assertThat(join(parts -> List.of(words, parts.get(1))))
          .isInstanceOf(UsageException.class)
          .hasMessageContaining("%d bytes of rank 0 are nothing", length);
    }
    for (byte[] words :
        List.of(
            Arrays.copyOf(whole, whole.length + 1), patched(whole, 1, -1), patched(whole, 1, 0))) {
      assertThat(join(parts -> List.of(words, parts.get(1))))
          .isInstanceOf(UsageException.class)
          .hasMessageContaining("bytes of rank 0 are nothing");
    }
    assertThat(join(parts -> List.of(whole, parts.get(1))))
        .isInstanceOf(PeerLostException.class)
        .hasMessageContaining("did not reach rank 0 at 127.0.0.1:1 within 0.3 s");
  }

  @Test
  void ranksKeepTheirPlaces() {
    assertThat(join(parts -> List.of(parts.get(1), parts.get(0))))
        .isInstanceOf(UsageException.class)
        .hasMessageContaining("has this rank at place 0, and had it at 1 before");
    assertThat(join(parts -> List.of(parts.get(1))))
        .isInstanceOf(UsageException.class)
        .hasMessageContaining("the parts of 1 ranks, and of 2 before");
  }

  @Test
  void whyRank0CannotListenReachesTheOthers() {
    byte[] cause =
        FailureCodec.encode(
            new UnavailableException("no port is free", Failure.remedy("free one").withRank(0)));
    byte[] words = ByteBuffer.allocate(1 + cause.length).put((byte) 2).put(cause).array();
    assertThat(join(parts -> List.of(words, parts.get(1))))
        .isInstanceOf(UnavailableException.class)
        .hasMessage("no port is free");
  }
}
