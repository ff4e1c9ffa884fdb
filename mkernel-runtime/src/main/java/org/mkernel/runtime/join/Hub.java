package org.mkernel.runtime.join;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NetworkInterface;
import java.net.StandardSocketOptions;
import java.net.UnknownHostException;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Deque;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.mkernel.api.Failure;
import org.mkernel.api.MKernelException;
import org.mkernel.api.MismatchException;
import org.mkernel.api.PeerLostException;
import org.mkernel.api.UnavailableException;
import org.mkernel.api.UsageException;

/** Rank 0's place: it lets ranks in, and passes on what concerns the others. */
final class Hub extends Membership {
  private static final Logger LOG = LogManager.getLogger(Hub.class);

  /** Strangers let wait at once: the oldest goes when one more comes. A handshake takes no time. */
  static final int MAX_STRANGERS = 256;

  private static final long LATECOMER_NANOS = TimeUnit.SECONDS.toNanos(3);
  private static final long STRANGER_NANOS = TimeUnit.SECONDS.toNanos(5);
  private static final int KEPT_REFUSALS = 4;
  private static final int BACKLOG = 1024;

  private final ServerSocketChannel server;
  private final String where;
  private final byte[] world = Handshake.nonce();
  private final long opened = System.nanoTime();
  private final Map<Link, Stranger> strangers = new LinkedHashMap<>();
  private final Map<Link, Integer> rankOf = new HashMap<>();
  private final @Nullable Link[] members;
  private final boolean[] left;
  private final BitSet came = new BitSet();
  private final CompletableFuture<Boolean> allKnow = new CompletableFuture<>();
  private final Deque<String> refusals = new ArrayDeque<>();
  private final byte[] @Nullable [] parts;
  private final Map<Long, Question> questions = new HashMap<>();
  private volatile InetAddress address;
  private long refused;
  private long finished;
  private long roundBegan;
  private long nextNumber;

  /** A connection that has not proven anything. */
  private static final class Stranger {
    final long since = System.nanoTime();
    byte @Nullable [] hello;
    byte @Nullable [] challenge;
  }

  /** A question whose answers are collected; without a link, rank 0 asks. */
  private record Question(
      @Nullable Link asker, long number, byte[] @Nullable [] answers, long deadline) {}

  private Hub(
      ServerSocketChannel server,
      InetAddress address,
      int size,
      Secret secret,
      long joinNanos,
      long waitNanos,
      ThreadFactory threads)
      throws IOException {
    super(0, size, secret, joinNanos, waitNanos, threads);
    this.server = server;
    this.address = address;
    this.where = String.valueOf(server.getLocalAddress());
    this.members = new Link[size];
    this.left = new boolean[size];
    this.parts = new byte[size][];
    server.configureBlocking(false);
    server.register(selector, SelectionKey.OP_ACCEPT);
  }

  static Hub open(
      Endpoint endpoint,
      int size,
      Secret secret,
      long joinNanos,
      long waitNanos,
      ThreadFactory threads) {
    return listen(endpoint, size, secret, joinNanos, waitNanos, threads).meet();
  }

  /** Listens at any free port of an address, for the ranks of a part of a world. */
  static Hub of(InetAddress address, int size, Membership whole) {
    try {
      ServerSocketChannel server = bind(new InetSocketAddress(address, 0));
      return new Hub(
          server, address, size, whole.secret, whole.joinNanos, whole.waitNanos, whole.threads);
    } catch (IOException e) {
      throw new UnavailableException(
          "rank %d can't listen at %s: %s"
              .formatted(whole.rank, address.getHostAddress(), e.getMessage()),
          Failure.remedy("raise the limit of open files (ulimit -n)").withRank(whole.rank),
          e);
    }
  }

  /** Listens for ranks that hear of it in another way than by the rendezvous. */
  static Hub listen(
      InetSocketAddress where,
      InetAddress address,
      int size,
      Secret secret,
      long joinNanos,
      long waitNanos,
      ThreadFactory threads)
      throws IOException {
    return new Hub(bind(where), address, size, secret, joinNanos, waitNanos, threads);
  }

  private static ServerSocketChannel bind(InetSocketAddress where) throws IOException {
    ServerSocketChannel server = ServerSocketChannel.open();
    boolean bound = false;
    try {
      server.setOption(StandardSocketOptions.SO_REUSEADDR, true);
      server.bind(where, BACKLOG);
      bound = true;
      return server;
    } finally {
      if (!bound) {
        closeQuietly(server);
      }
    }
  }

  /** Where it listens. */
  int port() {
    return server.socket().getLocalPort();
  }

  /** Lets all ranks in. */
  Hub meet() {
    boolean joined = false;
    try {
      start();
      var _ = await(ready, joinNanos + GRACE_NANOS, "let all ranks in");
      joined = true;
      return this;
    } finally {
      if (!joined) {
        tellLatecomers();
        close();
      }
    }
  }

  /** Ranks that come after the meeting has failed must not wait until their deadline. */
  private void tellLatecomers() {
    try {
      var _ = allKnow.get(LATECOMER_NANOS, TimeUnit.NANOSECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } catch (ExecutionException | TimeoutException e) {
      LOG.debug("some ranks did not come to hear of the failure", e);
    }
  }

  private static Hub listen(
      Endpoint endpoint,
      int size,
      Secret secret,
      long joinNanos,
      long waitNanos,
      ThreadFactory threads) {
    InetAddress address = resolve(endpoint, secret);
    ServerSocketChannel server = null;
    try {
      boolean own =
          address.isLoopbackAddress() || NetworkInterface.getByInetAddress(address) != null;
      // Behind a service or a translated address, rank 0 does not have the address by itself.
      server =
          bind(
              own
                  ? new InetSocketAddress(address, endpoint.port())
                  : new InetSocketAddress(endpoint.port()));
      return new Hub(server, address, size, secret, joinNanos, waitNanos, threads);
    } catch (IOException e) {
      closeQuietly(server);
      throw new UnavailableException(
          "rank 0 can't listen at %s: %s".formatted(endpoint, e.getMessage()),
          Failure.remedy(
                  "end the other rank 0 or program that listens there, or set MKERNEL_RENDEZVOUS"
                      + " to a free port of rank 0's host, alike for all ranks")
              .withRank(0),
          e);
    }
  }

  private static void closeQuietly(@Nullable ServerSocketChannel server) {
    try {
      if (server != null) {
        server.close();
      }
    } catch (IOException e) {
      LOG.debug("a listening socket did not close", e);
    }
  }

  private static InetAddress resolve(Endpoint endpoint, Secret secret) {
    try {
      InetAddress address = InetAddress.getAllByName(endpoint.host())[0];
      requireLoopback(endpoint, address, secret);
      return address;
    } catch (UnknownHostException e) {
      throw new UnavailableException(
          "rank 0 does not know the host of %s: %s".formatted(endpoint, e.getMessage()),
          Failure.remedy("set MKERNEL_RENDEZVOUS to an address of rank 0's host").withRank(0),
          e);
    }
  }

  static void requireLoopback(Endpoint endpoint, InetAddress address, Secret secret) {
    if (!secret.isShared() && !address.isLoopbackAddress()) {
      throw new UsageException(
          "the rendezvous %s is at %s, which is no loopback address, and there is no secret"
              .formatted(endpoint, address.getHostAddress()),
          Failure.remedy(
              "set MKERNEL_SECRET or MKERNEL_SECRET_FILE, alike for all ranks; without one, ranks"
                  + " meet on one host only, as at 127.0.0.1:12345"));
    }
  }

  @Override
  public InetAddress address() {
    return address;
  }

  @Override
  byte[] world() {
    return world.clone();
  }

  @Override
  void accept() {
    try {
      SocketChannel channel = server.accept();
      if (channel == null) {
        return;
      }
      channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
      Link link = new Link(channel, selector);
      if (strangers.size() >= MAX_STRANGERS) {
        Link oldest = strangers.keySet().iterator().next();
        refuse(oldest, "it was the oldest of %d that proved nothing".formatted(MAX_STRANGERS));
      }
      strangers.put(link, new Stranger());
    } catch (IOException e) {
      LOG.debug("a connection could not be accepted", e);
    }
  }

  @Override
  void received(Link link, FrameDecoder.Frame frame) throws IOException {
    Integer from = rankOf.get(link);
    if (from == null) {
      greet(link, frame);
      return;
    }
    switch (frame.type()) {
      case Message.GATHER -> gather(from, frame.payload());
      case Message.ABORT -> fail(FailureCodec.decode(frame.payload()));
      case Message.HEARTBEAT -> {
        // That it arrived is all that it says.
      }
      case Message.LEAVE -> leaves(from);
      case Message.QUESTION -> question(link, frame.payload());
      case Message.ANSWER -> answer(from, frame.payload());
      case Message.NOTE -> noted(from, frame.payload());
      default -> throw new ProtocolException("a frame of type %d".formatted(frame.type()));
    }
  }

  private void greet(Link link, FrameDecoder.Frame frame) throws IOException {
    Stranger stranger = strangers.get(link);
    if (stranger == null) {
      throw new ProtocolException("a frame after the end");
    }
    byte[] hello = stranger.hello;
    byte[] challenge = stranger.challenge;
    if (hello == null && frame.type() == Message.HELLO) {
      Handshake.Hello said = Handshake.Hello.decode(frame.payload());
      if (said.version() != Handshake.VERSION) {
        refuse(
            link,
            Handshake.Reason.VERSION,
            "protocol version %d; rank 0 speaks %d".formatted(said.version(), Handshake.VERSION));
        return;
      }
      stranger.hello = frame.payload();
      stranger.challenge = Handshake.challenge();
      link.send(Message.CHALLENGE, stranger.challenge);
    } else if (hello != null && challenge != null && frame.type() == Message.PROOF) {
      if (!Handshake.proves(secret, hello, challenge, frame.payload())) {
        refuse(link, Handshake.Reason.SECRET, "another secret than rank 0's");
        return;
      }
      admit(link, Handshake.Hello.decode(hello), hello, challenge);
    } else {
      throw new ProtocolException("a frame of type %d too early".formatted(frame.type()));
    }
  }

  /** Lets in who has proven to know the secret: what it says can be believed. */
  private void admit(Link link, Handshake.Hello said, byte[] hello, byte[] challenge)
      throws IOException {
    came.set(Math.clamp(said.rank(), 0, size));
    if (said.size() != size || said.rank() < 1 || said.rank() >= size) {
      String words =
          "rank %d of a world of %d came to the world of %d ranks at %s"
              .formatted(said.rank(), said.size(), size, where);
      refuse(link, Handshake.Reason.SIZE, words);
      fail(Handshake.Reason.SIZE.exception(words, said.rank()));
      finishTelling();
      return;
    }
    Link first = members[said.rank()];
    if (first != null) {
      String words =
          "two processes are rank %d: one at %s and one at %s"
              .formatted(said.rank(), first.peerAddress(), link.peerAddress());
      refuse(link, Handshake.Reason.DOUBLED, words);
      fail(Handshake.Reason.DOUBLED.exception(words, said.rank()));
      finishTelling();
      return;
    }
    strangers.remove(link);
    link.send(Message.WELCOME, Handshake.welcome(secret, hello, challenge, world));
    link.seal(
        Handshake.fromHub(secret, hello, challenge), Handshake.toHub(secret, hello, challenge));
    members[said.rank()] = link;
    rankOf.put(link, said.rank());
    if (link.channel().getLocalAddress() instanceof InetSocketAddress local) {
      address = local.getAddress();
    }
    MKernelException cause = failure();
    if (cause != null) {
      link.send(Message.ABORT, FailureCodec.encode(cause));
      finishTelling();
    } else if (rankOf.size() == size - 1) {
      stopListening();
      broadcast(Message.READY, new byte[0]);
      ready.complete(true);
    }
  }

  private void finishTelling() {
    if (came.get(1, size).cardinality() == size - 1) {
      allKnow.complete(true);
    }
  }

  private void stopListening() {
    closeQuietly(server);
    strangers.keySet().forEach(Link::close);
    strangers.clear();
  }

  private void refuse(Link link, Handshake.Reason reason, String words) {
    try {
      link.send(Message.REFUSAL, new Handshake.Refusal(reason, words).encode());
    } catch (IOException e) {
      LOG.debug("a refusal could not be sent", e);
    }
    refuse(link, words);
  }

  private void refuse(Link link, String words) {
    strangers.remove(link);
    link.close();
    refused++;
    refusals.addLast(link.peerAddress() + ": " + words);
    if (refusals.size() > KEPT_REFUSALS) {
      refusals.removeFirst();
    }
  }

  @Override
  void lost(Link link, IOException why) {
    link.close();
    Integer from = rankOf.remove(link);
    if (from == null) {
      if (strangers.containsKey(link)) {
        refuse(link, String.valueOf(why.getMessage()));
      }
      return;
    }
    members[from] = null;
    if (!allLeft.isDone()) {
      fail(
          new PeerLostException(
              "rank %d at %s is gone: %s".formatted(from, link.peerAddress(), why.getMessage()),
              Failure.remedy("look at the end of rank %d's output".formatted(from))
                  .withRank(0)
                  .withPeer(from),
              why));
    }
  }

  private void broadcast(byte type, byte[] payload) {
    for (Link member : members.clone()) {
      if (member != null) {
        try {
          member.send(type, payload);
        } catch (IOException e) {
          lost(member, e);
        }
      }
    }
  }

  @Override
  void spread(MKernelException cause) {
    broadcast(Message.ABORT, FailureCodec.encode(cause));
  }

  @Override
  void contribute(long number, byte[] contribution) throws IOException {
    gather(
        0,
        ByteBuffer.allocate(Long.BYTES + contribution.length)
            .putLong(number)
            .put(contribution)
            .array());
  }

  private void gather(int from, byte[] payload) throws ProtocolException {
    if (Parts.number(payload) != finished + 1 || parts[from] != null) {
      throw new ProtocolException(
          "a contribution to round %d out of turn".formatted(Parts.number(payload)));
    }
    if (Arrays.stream(presentParts()).noneMatch(Boolean::booleanValue)) {
      roundBegan = System.nanoTime();
    }
    parts[from] = Arrays.copyOfRange(payload, Long.BYTES, payload.length);
    if (Arrays.stream(presentParts()).allMatch(Boolean::booleanValue)) {
      finished++;
      byte[] result = Parts.encode(finished, parts);
      Arrays.fill(parts, null);
      broadcast(Message.RESULT, result);
      gathered(Parts.decode(result, size));
    }
  }

  private Boolean[] presentParts() {
    return Arrays.stream(parts).map(part -> part != null).toArray(Boolean[]::new);
  }

  @Override
  void ask(long number, byte[] question, long nanos) {
    begin(null, number, question, nanos);
  }

  private void question(Link asker, byte[] payload) throws ProtocolException {
    if (payload.length < 2 * Long.BYTES) {
      throw new ProtocolException("a question of %d bytes".formatted(payload.length));
    }
    ByteBuffer in = ByteBuffer.wrap(payload);
    begin(
        asker,
        in.getLong(),
        Arrays.copyOfRange(payload, 2 * Long.BYTES, payload.length),
        Math.clamp(in.getLong(), 0, TimeUnit.SECONDS.toNanos(10)));
  }

  private void begin(@Nullable Link asker, long number, byte[] question, long nanos) {
    long own = ++nextNumber;
    Question asked = new Question(asker, number, new byte[size][], System.nanoTime() + nanos);
    questions.put(own, asked);
    broadcast(
        Message.QUESTION,
        ByteBuffer.allocate(Long.BYTES + question.length).putLong(own).put(question).array());
    asked.answers[0] = answer(question);
    finishQuestions(System.nanoTime());
  }

  private void answer(int from, byte[] payload) throws ProtocolException {
    Question asked = questions.get(Parts.number(payload));
    if (asked != null) {
      asked.answers[from] = Arrays.copyOfRange(payload, Long.BYTES, payload.length);
      finishQuestions(System.nanoTime());
    }
  }

  private void finishQuestions(long now) {
    for (Iterator<Question> all = questions.values().iterator(); all.hasNext(); ) {
      Question asked = all.next();
      boolean complete = Arrays.stream(asked.answers).allMatch(answer -> answer != null);
      if (!complete && now - asked.deadline < 0) {
        continue;
      }
      all.remove();
      byte[] answers = Parts.encode(asked.number, asked.answers);
      try {
        if (asked.asker == null) {
          answered(asked.number, Parts.decode(answers, size));
        } else if (rankOf.containsKey(asked.asker)) {
          asked.asker.send(Message.ANSWERS, answers);
        }
      } catch (IOException e) {
        LOG.debug("answers could not be sent", e);
      }
    }
  }

  @Override
  void note(byte[] note) {
    noted(0, note);
  }

  @Override
  void sendLeave() {
    leaves(0);
  }

  private void leaves(int from) {
    left[from] = true;
    for (boolean gone : left) {
      if (!gone) {
        return;
      }
    }
    broadcast(Message.LEAVE, new byte[0]);
    allLeft.complete(true);
  }

  @Override
  void tick(long now) {
    for (Map.Entry<Link, Stranger> entry : List.copyOf(strangers.entrySet())) {
      if (now - entry.getValue().since > STRANGER_NANOS) {
        refuse(entry.getKey(), "it proved nothing within 5 s");
      }
    }
    for (Link member : members.clone()) {
      if (member != null) {
        watch(member, now);
      }
    }
    finishQuestions(now);
    if (isDead()) {
      return;
    }
    if (!ready.isDone() && now - opened > joinNanos) {
      allKnow.complete(true);
      fail(missing());
    }
    Boolean[] present = presentParts();
    boolean waiting = Arrays.stream(present).anyMatch(Boolean::booleanValue);
    for (int peer = 0; waiting && peer < size; peer++) {
      if (!present[peer] && left[peer]) {
        fail(
            new MismatchException(
                "rank %d has closed its world while others take part in an exchange"
                    .formatted(peer),
                Failure.remedy("close the world on all ranks, after the same calls")
                    .withPeer(peer)));
        return;
      }
    }
    if (waiting && now - roundBegan > joinNanos) {
      List<Integer> absent = new ArrayList<>();
      for (int peer = 0; peer < size; peer++) {
        if (!present[peer]) {
          absent.add(peer);
        }
      }
      fail(
          new PeerLostException(
              "ranks waited %.1f s for others to take part; missing are ranks %s"
                  .formatted(joinNanos / 1e9, absent),
              Failure.remedy(
                      "every rank must make the same collective calls (join, prepare) in the same"
                          + " order; raise MKERNEL_JOIN_DEADLINE if they are only slow")
                  .withRank(0)
                  .withPeer(absent.getFirst())));
    }
  }

  private MKernelException missing() {
    List<Integer> absent = new ArrayList<>();
    for (int peer = 1; peer < size; peer++) {
      if (members[peer] == null) {
        absent.add(peer);
      }
    }
    return new PeerLostException(
        "rank 0 waited %.1f s at %s; missing are ranks %s%s"
            .formatted(
                joinNanos / 1e9,
                where,
                absent,
                refused == 0
                    ? ""
                    : "; %d connections were refused, the last ones: %s"
                        .formatted(refused, String.join("; ", refusals))),
        Failure.remedy(
                "look at the output of those ranks; raise MKERNEL_JOIN_DEADLINE if they only start"
                    + " late")
            .withRank(0)
            .withPeer(absent.getFirst()));
  }

  @Override
  boolean isFlushed() {
    return Arrays.stream(members).allMatch(member -> member == null || member.isFlushed());
  }

  @Override
  void closeLinks() {
    stopListening();
    for (Link member : members) {
      if (member != null) {
        member.close();
      }
    }
  }

  @Override
  void finishLinks() {
    for (Link member : members) {
      if (member != null) {
        member.finish();
      }
    }
  }

  @Override
  boolean hasLinks() {
    return Arrays.stream(members).anyMatch(member -> member != null && member.isOpen());
  }
}
