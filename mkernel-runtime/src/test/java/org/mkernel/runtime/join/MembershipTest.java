package org.mkernel.runtime.join;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Random;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.mkernel.api.Config;
import org.mkernel.api.MKernelException;
import org.mkernel.api.MismatchException;
import org.mkernel.api.PeerLostException;
import org.mkernel.api.UnavailableException;
import org.mkernel.api.UsageException;

/** Ranks as threads of one process, over real sockets. */
final class MembershipTest {
  private static final String SECRET = "a secret of the tests, long enough";
  private static final Config CONFIG =
      Config.defaults().option("join-deadline", "20").option("deadline", "10");

  private static int freePort() {
    try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      return socket.getLocalPort();
    } catch (IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
  }

  private static Launch launch(int rank, int size, String host, int port) {
    return new Launch(
        "explicit",
        rank,
        size,
        OptionalInt.empty(),
        Optional.of(new Endpoint(host, port)),
        List.of());
  }

  /** A rank to be: what it joins with. */
  private record Rank(Launch launch, Config config) {}

  /** Runs ranks at once, and returns what each threw, or null. */
  private static List<Throwable> meet(List<Rank> ranks, Consumer<Membership> body)
      throws InterruptedException {
    Throwable[] thrown = new Throwable[ranks.size()];
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < ranks.size(); i++) {
      int index = i;
      Rank rank = ranks.get(i);
      threads.add(
          Thread.ofPlatform()
              .start(() -> {
                try (Membership membership = Membership.join(rank.launch(), rank.config())) {
                  body.accept(membership);
                  membership.leave();
                } catch (MKernelException e) {
                  thrown[index] = e;
                }
              }));
    }
    for (Thread thread : threads) {
      assertThat(thread.join(java.time.Duration.ofMinutes(1))).isTrue();
    }
    List<Throwable> all = new ArrayList<>();
    for (Throwable e : thrown) {
      all.add(e);
    }
    return all;
  }

  private static List<Rank> world(int size, String host, Config config) {
    int port = freePort();
    List<Rank> ranks = new ArrayList<>();
    for (int rank = 0; rank < size; rank++) {
      ranks.add(new Rank(launch(rank, size, host, port), config));
    }
    return ranks;
  }

  private static void hasNone(List<Throwable> thrown) {
    assertThat(thrown).allMatch(e -> e == null);
  }

  @ParameterizedTest
  @ValueSource(strings = {"127.0.0.1", "::1", "localhost"})
  void gathersInOrderOverBothFamilies(String host) throws Exception {
    hasNone(
        meet(
            world(5, host, CONFIG),
            membership -> {
              for (int round = 0; round < 50; round++) {
                String own = membership.rank() + " in " + round;
                List<byte[]> all = membership.allGather(own.getBytes(UTF_8));
                for (int peer = 0; peer < 5; peer++) {
                  assertThat(new String(all.get(peer), UTF_8)).isEqualTo(peer + " in " + round);
                }
              }
              assertThat(membership.address().isLoopbackAddress()).isTrue();
            }));
  }

  @Test
  void carriesLongContributionsAndSharesAKey() throws Exception {
    List<byte[]> keys = new CopyOnWriteArrayList<>();
    hasNone(
        meet(
            world(3, "127.0.0.1", CONFIG.option("secret", SECRET)),
            membership -> {
              byte[] own = new byte[5 << 20];
              new Random(membership.rank()).nextBytes(own);
              List<byte[]> all = membership.allGather(own);
              for (int peer = 0; peer < 3; peer++) {
                byte[] expected = new byte[5 << 20];
                new Random(peer).nextBytes(expected);
                assertThat(all.get(peer)).isEqualTo(expected);
              }
              keys.add(membership.key("test"));
              assertThat(membership.key("other")).isNotEqualTo(membership.key("test"));
            }));
    assertThat(keys.get(0)).isEqualTo(keys.get(1)).isEqualTo(keys.get(2)).hasSize(32);
  }

  @Test
  void asksAllAndTellsRank0() throws Exception {
    List<String> notes = new CopyOnWriteArrayList<>();
    CountDownLatch noted = new CountDownLatch(4);
    hasNone(
        meet(
            world(4, "127.0.0.1", CONFIG),
            membership -> {
              membership.listen(
                  new Membership.Listener() {
                    @Override
                    public void aborted(MKernelException cause) {}

                    @Override
                    public byte[] answer(byte[] question) {
                      return (new String(question, UTF_8) + membership.rank()).getBytes(UTF_8);
                    }

                    @Override
                    public void noted(int from, byte[] note) {
                      notes.add(from + new String(note, UTF_8));
                      noted.countDown();
                    }

                    @Override
                    public void tick() {}
                  });
              var _ = membership.allGather(new byte[0]);
              String name = "q" + membership.rank() + "-";
              List<Optional<byte[]>> answers =
                  membership.ask(name.getBytes(UTF_8), TimeUnit.SECONDS.toNanos(5));
              for (int peer = 0; peer < 4; peer++) {
                assertThat(new String(answers.get(peer).orElseThrow(), UTF_8))
                    .isEqualTo(name + peer);
              }
              membership.tell("!".getBytes(UTF_8));
              if (membership.rank() == 0) {
                try {
                  assertThat(noted.await(10, TimeUnit.SECONDS)).isTrue();
                } catch (InterruptedException e) {
                  throw new IllegalStateException(e);
                }
              }
            }));
    assertThat(notes).containsExactlyInAnyOrder("0!", "1!", "2!", "3!");
  }

  @Test
  void namesMissingRanksOnAllThatCame() throws Exception {
    List<Rank> ranks = world(5, "127.0.0.1", CONFIG.option("join-deadline", "1"));
    List<Throwable> thrown = meet(List.of(ranks.get(0), ranks.get(2)), membership -> {});
    for (Throwable e : thrown) {
      assertThat(e)
          .isInstanceOf(PeerLostException.class)
          .hasMessageContaining("missing are ranks [1, 3, 4]");
      assertThat(((MKernelException) e).failure().peer()).hasValue(1);
    }
  }

  @Test
  void namesRank0WhenItIsMissing() throws Exception {
    List<Rank> ranks = world(2, "127.0.0.1", CONFIG.option("join-deadline", "0.5"));
    List<Throwable> thrown = meet(List.of(ranks.get(1)), membership -> {});
    assertThat(thrown.getFirst())
        .isInstanceOf(PeerLostException.class)
        .hasMessageContaining("did not reach rank 0")
        .hasMessageContaining("refused");
  }

  @Test
  void namesADoubledRank() throws Exception {
    List<Rank> ranks = world(4, "127.0.0.1", CONFIG);
    List<Throwable> thrown =
        meet(List.of(ranks.get(0), ranks.get(1), ranks.get(2), ranks.get(2)), membership -> {});
    assertThat(thrown)
        .allSatisfy(e ->
            assertThat(e)
                .isInstanceOf(MismatchException.class)
                .hasMessageContaining("two processes are rank 2"));
  }

  @Test
  void namesASecondRank0() throws Exception {
    List<Rank> ranks = world(2, "127.0.0.1", CONFIG.option("join-deadline", "2"));
    List<Throwable> thrown =
        meet(List.of(ranks.get(0), ranks.get(0), ranks.get(1)), membership -> {});
    assertThat(thrown.subList(0, 2))
        .anySatisfy(e ->
            assertThat(e)
                .isInstanceOf(UnavailableException.class)
                .hasMessageContaining("Address already in use"));
    assertThat(thrown.get(2)).isNull();
  }

  @Test
  void namesAnotherWorldSize() throws Exception {
    List<Rank> ranks = world(3, "127.0.0.1", CONFIG);
    Rank other = new Rank(launch(2, 4, "127.0.0.1", port(ranks)), ranks.get(0).config());
    List<Throwable> thrown = meet(List.of(ranks.get(0), ranks.get(1), other), membership -> {});
    assertThat(thrown)
        .allSatisfy(e ->
            assertThat(e)
                .isInstanceOf(MismatchException.class)
                .hasMessageContaining("rank 2 of a world of 4 came to the world of 3 ranks"));
  }

  private static int port(List<Rank> ranks) {
    return ranks.getFirst().launch().rendezvous().orElseThrow().port();
  }

  @Test
  void refusesAnotherSecretAndSaysSo() throws Exception {
    List<Rank> ranks =
        world(3, "127.0.0.1", CONFIG.option("secret", SECRET).option("join-deadline", "2"));
    Rank wrong =
        new Rank(ranks.get(1).launch(), ranks.get(1).config().option("secret", SECRET + "!"));
    Rank none = new Rank(ranks.get(2).launch(), CONFIG);
    List<Throwable> thrown = meet(List.of(ranks.get(0), wrong, none), membership -> {});
    assertThat(thrown.get(0))
        .isInstanceOf(PeerLostException.class)
        .hasMessageContaining("missing are ranks [1, 2]; 2 connections were refused")
        .hasMessageContaining("another secret than rank 0's");
    assertThat(thrown.subList(1, 3))
        .allSatisfy(e ->
            assertThat(e)
                .isInstanceOf(MismatchException.class)
                .hasMessageContaining("another secret than rank 0's"));
  }

  @ParameterizedTest
  @ValueSource(strings = {"0.0.0.0", "192.0.2.1", "::", "2001:db8::1"})
  void keepsToLoopbackWithoutASecret(String host) throws Exception {
    for (Throwable e : meet(world(2, host, CONFIG), membership -> {})) {
      assertThat(e)
          .isInstanceOf(UsageException.class)
          .hasMessageContaining("no loopback address, and there is no secret");
      assertThat(((MKernelException) e).failure().remedy().orElseThrow())
          .contains("MKERNEL_SECRET");
    }
  }

  @Test
  void refusesAShortSecret() {
    UsageException e =
        org.assertj.core.api.Assertions.catchThrowableOfType(
            UsageException.class, () -> Secret.of("short"));
    assertThat(e).hasMessageContaining("5 bytes; 16 to 4096 are needed");
  }

  @Test
  void aRankThatEndsIsNamedOnAllOthers() throws Exception {
    List<Throwable> thrown =
        meet(
            world(4, "127.0.0.1", CONFIG),
            membership -> {
              var _ = membership.allGather(new byte[0]);
              if (membership.rank() == 2) {
                membership.close();
                throw new PeerLostException("the rank that ends");
              }
              var _ = membership.allGather(new byte[0]);
            });
    for (int rank : new int[] {0, 1, 3}) {
      assertThat(thrown.get(rank))
          .isInstanceOf(PeerLostException.class)
          .hasMessageContaining("rank 2 at")
          .hasMessageContaining("is gone");
      assertThat(((MKernelException) thrown.get(rank)).failure().peer()).hasValue(2);
    }
  }

  @Test
  void rank0ThatEndsIsNamedOnAllOthers() throws Exception {
    List<Throwable> thrown =
        meet(
            world(3, "127.0.0.1", CONFIG),
            membership -> {
              if (membership.rank() == 0) {
                membership.close();
                throw new PeerLostException("the rank that ends");
              }
              var _ = membership.allGather(new byte[0]);
            });
    for (int rank : new int[] {1, 2}) {
      assertThat(((MKernelException) thrown.get(rank)).failure().peer()).hasValue(0);
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1})
  void anAbortReachesAllWithItsParts(int culprit) throws Exception {
    List<Throwable> thrown =
        meet(
            world(3, "127.0.0.1", CONFIG),
            membership -> {
              if (membership.rank() == culprit) {
                membership.abort(
                    new MismatchException(
                        "what rank %d says".formatted(culprit),
                        org.mkernel.api.Failure.remedy("do this")
                            .withRank(culprit)
                            .withPeer(7)
                            .withOperation("op")
                            .withTask("task")
                            .withNativeCode(-3)));
              }
              var _ = membership.allGather(new byte[0]);
            });
    assertThat(thrown)
        .allSatisfy(e -> {
          assertThat(e)
              .isInstanceOf(MismatchException.class)
              .hasMessage("what rank %d says", culprit);
          assertThat(((MKernelException) e).failure().peer()).hasValue(7);
          assertThat(((MKernelException) e).failure().nativeCode()).hasValue(-3);
          assertThat(((MKernelException) e).failure().remedy()).hasValue("do this");
        });
  }

  @Test
  void namesTheRankThatDoesNotTakePart() throws Exception {
    List<Throwable> thrown =
        meet(
            world(3, "127.0.0.1", CONFIG.option("deadline", "0.6")),
            membership -> {
              if (membership.rank() != 1) {
                var _ = membership.allGather(new byte[0]);
              } else {
                membership.leave();
              }
            });
    assertThat(thrown.get(0)).hasMessageContaining("rank 1 has closed its world");
    assertThat(thrown.get(2)).hasMessageContaining("rank 1 has closed its world");
  }

  @Test
  void namesTheRankThatIsLate() throws Exception {
    List<Throwable> thrown =
        meet(
            world(3, "127.0.0.1", CONFIG.option("join-deadline", "1.5")),
            membership -> {
              if (membership.rank() != 1) {
                var _ = membership.allGather(new byte[0]);
              } else {
                try {
                  Thread.sleep(2500);
                } catch (InterruptedException e) {
                  throw new IllegalStateException(e);
                }
              }
            });
    for (int rank : new int[] {0, 2}) {
      assertThat(thrown.get(rank))
          .isInstanceOf(PeerLostException.class)
          .hasMessageContaining("missing are ranks [1]");
    }
  }

  /** Strangers of all kinds, while ranks meet. */
  @Test
  void strangersNeitherGetInNorHoldUpRanks() throws Exception {
    List<Rank> ranks = world(3, "127.0.0.1", CONFIG.option("secret", SECRET));
    InetSocketAddress address =
        new InetSocketAddress(InetAddress.getLoopbackAddress(), port(ranks));
    List<SocketChannel> slow = new ArrayList<>();
    Thread hub = null;
    Throwable[] failed = new Throwable[1];
    try {
      hub =
          Thread.ofPlatform()
              .start(() -> {
                try (Membership membership =
                    Membership.join(ranks.get(0).launch(), ranks.get(0).config())) {
                  var _ = membership.allGather(new byte[0]);
                  membership.leave();
                } catch (Throwable e) {
                  failed[0] = e;
                }
              });
      Random random = new Random(5);
      for (int i = 0; i < 3 * Hub.MAX_STRANGERS; i++) {
        SocketChannel channel = connect(address);
        slow.add(channel);
        byte[] garbage = new byte[random.nextInt(1, 60)];
        random.nextBytes(garbage);
        switch (i % 4) {
          case 0 -> {
            // Says nothing at all.
          }
          case 1 -> write(channel, ByteBuffer.wrap(garbage));
          case 2 -> write(channel, ByteBuffer.wrap(hello(), 0, 20));
          default -> write(channel, ByteBuffer.wrap(hello()));
        }
      }
      hasNone(
          meet(
              ranks.subList(1, 3),
              membership -> {
                var _ = membership.allGather(new byte[0]);
              }));
    } finally {
      for (SocketChannel channel : slow) {
        channel.close();
      }
      if (hub != null) {
        hub.join();
      }
    }
    assertThat(failed[0]).isNull();
  }

  private static byte[] hello() {
    return FrameDecoder.encode(
        Message.HELLO, new Handshake.Hello(Handshake.VERSION, 3, 1).encode(), null);
  }

  private static SocketChannel connect(InetSocketAddress address) throws Exception {
    for (int attempt = 0; ; attempt++) {
      try {
        return SocketChannel.open(address);
      } catch (IOException e) {
        if (attempt == 200) {
          throw e;
        }
        Thread.sleep(10);
      }
    }
  }

  private static void write(SocketChannel channel, ByteBuffer bytes) {
    try {
      while (bytes.hasRemaining()) {
        channel.write(bytes);
      }
    } catch (IOException e) {
      // It was thrown out before it had said all: as it should be.
      bytes.position(bytes.limit());
    }
  }

  @Test
  void anotherVersionIsToldSo() throws Exception {
    List<Rank> ranks = world(2, "127.0.0.1", CONFIG.option("join-deadline", "1"));
    Thread stranger =
        Thread.ofPlatform()
            .start(() -> {
              try (SocketChannel channel =
                  connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), port(ranks)))) {
                byte[] hello = new Handshake.Hello(9, 2, 1).encode();
                write(channel, ByteBuffer.wrap(FrameDecoder.encode(Message.HELLO, hello, null)));
                ByteBuffer in = ByteBuffer.allocate(600);
                while (channel.read(in) > 0) {
                  // Until it is thrown out.
                }
                FrameDecoder.Frame frame = new FrameDecoder(Message.MAX_HANDSHAKE).next(in.flip());
                assertThat(Handshake.Refusal.decode(frame.payload()).words())
                    .isEqualTo("protocol version 9; rank 0 speaks 1");
              } catch (Exception e) {
                throw new IllegalStateException(e);
              }
            });
    List<Throwable> thrown = meet(ranks.subList(0, 1), membership -> {});
    stranger.join();
    assertThat(thrown.getFirst()).hasMessageContaining("protocol version 9; rank 0 speaks 1");
  }
}
