package org.mkernel.runtime.join;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NetworkInterface;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;
import org.mkernel.api.Config;
import org.mkernel.api.Failure;
import org.mkernel.api.MKernelException;
import org.mkernel.api.MismatchException;
import org.mkernel.api.PeerLostException;
import org.mkernel.api.UnavailableException;
import org.mkernel.api.UsageException;
import org.mkernel.api.spi.Exchange;

/**
 * How ranks meet that a caller's own exchange already ties together. In a first round each gives a
 * card: its place among the cards is its rank. In a second one rank 0 says where it listens, and a
 * secret that it drew for this world. Nothing that the exchange returns is believed unchecked, and
 * it is waited for no longer than joining may take.
 */
public final class Introduction {
  private static final int MAGIC = 0x6d6b6964;
  private static final int VERSION = 1;
  private static final int CARD_BYTES = 2 * Integer.BYTES + Secret.BYTES;
  private static final int MAX_PART = 16 << 10;
  private static final int MAX_SIZE = 65536;
  private static final int MAX_ADDRESSES = 16;
  private static final byte LISTENS = 1;
  private static final byte FAILED = 2;
  private static final String REMEDY =
      "let the exchange return what each rank gave, unchanged and ordered by rank, and let all"
          + " ranks join at the same point of their calls";

  private final Exchange exchange;
  private final Config config;
  private final Launch launch;
  private final boolean oneHost;

  private Introduction(Exchange exchange, Config config, Launch launch, boolean oneHost) {
    this.exchange = exchange;
    this.config = config;
    this.launch = launch;
    this.oneHost = oneHost;
  }

  /**
   * Finds out by an exchange which rank this is, and of how many. Collective.
   *
   * @param exchange the caller's exchange
   * @param config settings: {@code join-deadline}, {@code node}; {@code rank} and {@code
   *     world-size}, where set, must be what the exchange says
   * @return what was found out
   * @throws UsageException when what it returns can't be what the ranks gave
   * @throws MismatchException when ranks are of different versions
   * @throws PeerLostException when it takes too long
   * @throws UnavailableException when it fails
   */
  public static Introduction by(Exchange exchange, Config config) {
    byte[] own = card();
    List<byte[]> cards = call(exchange, own, config);
    int rank = placeOf(own, cards);
    Map<ByteBuffer, Integer> seen = new HashMap<>();
    boolean oneHost = true;
    for (int peer = 0; peer < cards.size(); peer++) {
      check(peer, cards.get(peer));
      Integer first = seen.putIfAbsent(ByteBuffer.wrap(cards.get(peer), 0, CARD_BYTES), peer);
      if (first != null) {
        throw bad("ranks %d and %d of the exchange gave the same".formatted(first, peer));
      }
      oneHost &=
          Arrays.equals(
              own, CARD_BYTES, own.length, cards.get(peer), CARD_BYTES, cards.get(peer).length);
    }
    String source = "the exchange of the caller";
    List<Launch.Origin> origins =
        List.of(
            new Launch.Origin("rank", agreed(config, "rank", rank), source),
            new Launch.Origin("world", agreed(config, "world-size", cards.size()), source));
    return new Introduction(
        exchange,
        config,
        new Launch(
            "exchange", rank, cards.size(), node(config, cards.size()), Optional.empty(), origins),
        oneHost);
  }

  /**
   * Who this rank is; where ranks meet is not known yet.
   *
   * @return rank and size
   */
  public Launch launch() {
    return launch;
  }

  /**
   * Meets the others. Collective; for a world of several ranks.
   *
   * @return the place in the world
   */
  public Membership meet() {
    return launch.rank() == 0 ? listen() : connect();
  }

  private Membership listen() {
    byte[] drawn = Handshake.nonce();
    Hub hub;
    byte[] words;
    try {
      InetAddress loopback = InetAddress.getLoopbackAddress();
      List<InetAddress> addresses = oneHost ? List.of(loopback) : ownAddresses();
      hub =
          Hub.listen(
              oneHost ? new InetSocketAddress(loopback, 0) : new InetSocketAddress(0),
              addresses.getFirst(),
              launch.size(),
              secret(drawn),
              Membership.joinNanos(config),
              config.deadline().toNanos(),
              config.threads());
      words = Invitation.encode(hub.port(), drawn, addresses);
    } catch (IOException e) {
      UnavailableException failure =
          new UnavailableException(
              "rank 0 can't listen: " + e.getMessage(),
              Failure.remedy("look at the network interfaces of rank 0's host").withRank(0),
              e);
      // The others wait for words of rank 0, and would learn nothing else.
      var _ = tell(Invitation.refusal(failure));
      throw failure;
    }
    boolean told = false;
    try {
      var _ = tell(words);
      told = true;
    } finally {
      if (!told) {
        hub.close();
      }
    }
    return hub.meet();
  }

  private Membership connect() {
    byte[] words = tell(Handshake.nonce()).getFirst();
    Invitation invitation = Invitation.decode(words);
    return Member.connect(
        launch,
        invitation.endpoints(),
        invitation.secret(),
        Membership.joinNanos(config),
        config.deadline().toNanos(),
        config.threads());
  }

  /** The second round. */
  private List<byte[]> tell(byte[] own) {
    List<byte[]> parts = call(exchange, own, config);
    if (parts.size() != launch.size()) {
      throw bad(
          "the exchange returned the parts of %d ranks, and of %d before"
              .formatted(parts.size(), launch.size()));
    }
    if (placeOf(own, parts) != launch.rank()) {
      throw bad(
          "the exchange has this rank at place %d, and had it at %d before"
              .formatted(placeOf(own, parts), launch.rank()));
    }
    return parts;
  }

  private static Secret secret(byte[] drawn) {
    return Secret.of(HexFormat.of().formatHex(drawn));
  }

  /**
   * What rank 0 says in the second round.
   *
   * @param secret that of this world
   * @param endpoints where to try to reach rank 0, in this order
   */
  private record Invitation(Secret secret, List<Endpoint> endpoints) {
    static byte[] encode(int port, byte[] drawn, List<InetAddress> addresses) {
      ByteBuffer out =
          ByteBuffer.allocate(MAX_PART)
              .put(LISTENS)
              .putInt(port)
              .put(drawn)
              .put((byte) addresses.size());
      for (InetAddress address : addresses) {
        out.put((byte) address.getAddress().length).put(address.getAddress());
      }
      return Arrays.copyOf(out.array(), out.position());
    }

    static byte[] refusal(MKernelException failure) {
      byte[] cause = FailureCodec.encode(failure);
      return ByteBuffer.allocate(1 + cause.length).put(FAILED).put(cause).array();
    }

    static Invitation decode(byte[] words) {
      try {
        ByteBuffer in = ByteBuffer.wrap(words);
        byte type = in.get();
        if (type == FAILED) {
          throw FailureCodec.decode(Arrays.copyOfRange(words, 1, words.length));
        }
        int port = in.getInt();
        byte[] drawn = new byte[Secret.BYTES];
        in.get(drawn);
        int count = in.get();
        List<Endpoint> endpoints = new ArrayList<>();
        for (int i = 0; i < count; i++) {
          byte[] address = new byte[in.get() == 4 ? 4 : 16];
          in.get(address);
          endpoints.add(new Endpoint(InetAddress.getByAddress(address).getHostAddress(), port));
        }
        if (type == LISTENS && !endpoints.isEmpty() && !in.hasRemaining()) {
          return new Invitation(Introduction.secret(drawn), endpoints);
        }
      } catch (BufferUnderflowException | IOException | UsageException e) {
        throw strange(0, words, e);
      }
      throw strange(0, words, null);
    }
  }

  /** Calls the exchange on a thread of its own: it may never return. */
  private static List<byte[]> call(Exchange exchange, byte[] own, Config config) {
    long nanos = Membership.joinNanos(config);
    CompletableFuture<List<byte[]>> result = new CompletableFuture<>();
    Thread caller =
        config
            .threads()
            .newThread(() -> {
              try {
                result.complete(copy(exchange.allGather(own.clone())));
              } catch (Throwable e) {
                result.completeExceptionally(e);
              }
            });
    caller.setName("mkernel-exchange");
    caller.setDaemon(true);
    caller.start();
    try {
      return result.get(nanos, TimeUnit.NANOSECONDS);
    } catch (ExecutionException e) {
      if (e.getCause() instanceof MKernelException known) {
        throw known;
      }
      throw new UnavailableException(
          "the exchange of the caller failed: " + e.getCause(),
          Failure.remedy("look at what it threw, the cause of this exception"),
          e.getCause());
    } catch (TimeoutException e) {
      caller.interrupt();
      throw new PeerLostException(
          "the exchange of the caller did not return within %.1f s".formatted(nanos / 1e9),
          Failure.remedy(
              "look whether all ranks join; raise MKERNEL_JOIN_DEADLINE if some only start late"),
          e);
    } catch (InterruptedException e) {
      caller.interrupt();
      Thread.currentThread().interrupt();
      throw new PeerLostException(
          "this rank was interrupted while it waited for the exchange of the caller",
          Failure.UNKNOWN,
          e);
    }
  }

  private static List<byte[]> copy(@Nullable List<byte[]> parts) {
    if (parts == null || parts.isEmpty() || parts.size() > MAX_SIZE) {
      throw bad(
          "the exchange returned the parts of %s ranks; 1 to %d are possible"
              .formatted(parts == null ? "no" : Integer.toString(parts.size()), MAX_SIZE));
    }
    List<byte[]> copies = new ArrayList<>(parts.size());
    for (int rank = 0; rank < parts.size(); rank++) {
      byte[] part = parts.get(rank);
      if (part == null || part.length > MAX_PART) {
        throw bad(
            "the exchange returned %s for rank %d; at most %d are possible"
                .formatted(part == null ? "null" : part.length + " bytes", rank, MAX_PART));
      }
      copies.add(part.clone());
    }
    return copies;
  }

  private static int placeOf(byte[] own, List<byte[]> parts) {
    int place = -1;
    for (int i = 0; i < parts.size(); i++) {
      if (Arrays.equals(own, parts.get(i))) {
        if (place >= 0) {
          throw bad(
              "the exchange returned what this rank gave twice, as of ranks %d and %d"
                  .formatted(place, i));
        }
        place = i;
      }
    }
    if (place < 0) {
      throw bad(
          "the exchange returned the parts of %d ranks, and what this rank gave is not among them"
              .formatted(parts.size()));
    }
    return place;
  }

  private static UsageException bad(String words) {
    return new UsageException(words, Failure.remedy(REMEDY));
  }

  private static UsageException strange(int peer, byte[] part, @Nullable Throwable cause) {
    UsageException bad =
        bad("%d bytes of rank %d are nothing that mkernel gave".formatted(part.length, peer));
    if (cause != null) {
      bad.addSuppressed(cause);
    }
    return bad;
  }

  /** Who this is: nobody else has the same, but those of one host end alike. */
  static byte[] card() {
    byte[] host = host().getBytes(UTF_8);
    return ByteBuffer.allocate(CARD_BYTES + host.length)
        .putInt(MAGIC)
        .putInt(VERSION)
        .put(Handshake.nonce())
        .put(host)
        .array();
  }

  /** What ranks have in common that reach one another by the loopback address. */
  private static String host() {
    try {
      return HostIdentity.own() + Files.readSymbolicLink(Path.of("/proc/self/ns/net"));
    } catch (IOException | UnsupportedOperationException e) {
      return HostIdentity.own();
    }
  }

  private static void check(int peer, byte[] card) {
    ByteBuffer in = ByteBuffer.wrap(card);
    if (card.length < 2 * Integer.BYTES || in.getInt() != MAGIC) {
      throw strange(peer, card, null);
    }
    int version = in.getInt();
    if (version != VERSION) {
      throw new MismatchException(
          "rank %d introduces itself in version %d; this rank speaks %d"
              .formatted(peer, version, VERSION),
          Failure.remedy("run the same version of mkernel everywhere").withPeer(peer));
    }
    if (card.length < CARD_BYTES) {
      throw strange(peer, card, null);
    }
  }

  /** The number as text; a setting of the same name must not say anything else. */
  private static String agreed(Config config, String option, int number) {
    String text = Integer.toString(number);
    config
        .option(option)
        .filter(set -> !set.equals(text))
        .ifPresent(set -> {
          throw new UsageException(
              "option %s is \"%s\", but the exchange of the caller says %s"
                  .formatted(option, set, text),
              Failure.remedy("leave the option out: the exchange says it"));
        });
    return text;
  }

  private static OptionalInt node(Config config, int size) {
    Optional<String> text = config.option("node");
    if (text.isEmpty()) {
      return OptionalInt.empty();
    }
    if (!text.get().matches("[0-9]{1,5}") || Integer.parseInt(text.get()) >= size) {
      throw new UsageException(
          "option node is \"%s\"; a whole number from 0 to %d is needed"
              .formatted(text.get(), size - 1));
    }
    return OptionalInt.of(Integer.parseInt(text.get()));
  }

  /** Addresses of this host that others may reach, IPv4 first. */
  private static List<InetAddress> ownAddresses() throws IOException {
    List<InetAddress> addresses =
        NetworkInterface.networkInterfaces()
            .flatMap(NetworkInterface::inetAddresses)
            .filter(address -> !address.isLoopbackAddress() && !address.isLinkLocalAddress())
            .sorted(Comparator.comparingInt(address -> address.getAddress().length))
            .limit(MAX_ADDRESSES)
            .toList();
    if (addresses.isEmpty()) {
      throw new IOException("this host has loopback addresses only");
    }
    return addresses;
  }
}
