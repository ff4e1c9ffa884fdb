package org.mkernel.runtime.join;

import java.io.DataInputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.net.UnknownHostException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.mkernel.api.Failure;
import org.mkernel.api.MKernelException;
import org.mkernel.api.PeerLostException;

/** The place of a rank other than 0: one connection, to rank 0. */
final class Member extends Membership {
  private static final Logger LOG = LogManager.getLogger(Member.class);
  private static final long LEAST_TRY_NANOS = TimeUnit.MILLISECONDS.toNanos(5);
  private static final long FIRST_PAUSE_MILLIS = 20;
  private static final long LAST_PAUSE_MILLIS = 500;
  private static final long CONNECT_MILLIS = 2000;
  private static final long HANDSHAKE_MILLIS = 5000;

  private final Link hub;
  private final byte[] world;
  private final InetAddress address;

  private Member(
      Launch launch,
      Secret secret,
      Greeting greeting,
      long joinNanos,
      long waitNanos,
      ThreadFactory threads)
      throws IOException {
    super(launch.rank(), launch.size(), secret, joinNanos, waitNanos, threads);
    this.world = greeting.world;
    this.hub = new Link(greeting.channel, selector);
    hub.seal(
        Handshake.toHub(secret, greeting.hello, greeting.challenge),
        Handshake.fromHub(secret, greeting.hello, greeting.challenge));
    this.address = ((InetSocketAddress) greeting.channel.getLocalAddress()).getAddress();
  }

  /** A handshake that rank 0 ended well. */
  private record Greeting(SocketChannel channel, byte[] hello, byte[] challenge, byte[] world) {}

  static Member connect(
      Launch launch,
      List<Endpoint> endpoints,
      Secret secret,
      long joinNanos,
      long waitNanos,
      ThreadFactory threads) {
    long deadline = System.nanoTime() + joinNanos;
    Greeting greeting = greet(launch, endpoints, secret, joinNanos, deadline);
    Member member;
    try {
      member = new Member(launch, secret, greeting, joinNanos, waitNanos, threads);
    } catch (IOException e) {
      closeQuietly(greeting.channel);
      throw lost(launch, endpoints, joinNanos, e);
    }
    boolean joined = false;
    try {
      member.start();
      var _ =
          member.await(
              member.ready,
              Math.max(0, deadline - System.nanoTime()) + 2 * GRACE_NANOS,
              "say that all ranks are here");
      joined = true;
      return member;
    } finally {
      if (!joined) {
        member.close();
      }
    }
  }

  /** Tries until rank 0 lets this rank in, refuses it, or time is up. */
  private static Greeting greet(
      Launch launch, List<Endpoint> endpoints, Secret secret, long joinNanos, long deadline) {
    IOException last = new IOException("there was no time to try");
    long pause = FIRST_PAUSE_MILLIS;
    while (deadline - System.nanoTime() > LEAST_TRY_NANOS) {
      for (Endpoint endpoint : endpoints) {
        try {
          for (InetAddress address : InetAddress.getAllByName(endpoint.host())) {
            Hub.requireLoopback(endpoint, address, secret);
            try {
              return greet(
                  launch, new InetSocketAddress(address, endpoint.port()), secret, deadline);
            } catch (IOException e) {
              last = e;
            }
          }
        } catch (UnknownHostException e) {
          last = new IOException("unknown host " + e.getMessage(), e);
        }
      }
      try {
        Thread.sleep(
            Math.clamp(TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime()), 1, pause));
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new PeerLostException(
            "rank %d was interrupted while it joined".formatted(launch.rank()),
            Failure.UNKNOWN.withRank(launch.rank()).withPeer(launch.rank()),
            e);
      }
      pause = Math.min(2 * pause, LAST_PAUSE_MILLIS);
    }
    throw lost(launch, endpoints, joinNanos, last);
  }

  private static PeerLostException lost(
      Launch launch, List<Endpoint> endpoints, long joinNanos, IOException why) {
    String where = String.join(" or ", endpoints.stream().map(Endpoint::toString).toList());
    return new PeerLostException(
        "rank %d did not reach rank 0 at %s within %.1f s: %s"
            .formatted(launch.rank(), where, joinNanos / 1e9, why.getMessage()),
        Failure.remedy(
                "look at the output of rank 0, and whether this host reaches %s; raise"
                        .formatted(where)
                    + " MKERNEL_JOIN_DEADLINE if rank 0 only starts late")
            .withRank(launch.rank())
            .withPeer(0),
        why);
  }

  private static void closeQuietly(SocketChannel channel) {
    try {
      channel.close();
    } catch (IOException e) {
      LOG.debug("a socket did not close", e);
    }
  }

  private static Greeting greet(
      Launch launch, InetSocketAddress address, Secret secret, long deadline) throws IOException {
    SocketChannel channel = SocketChannel.open();
    boolean open = false;
    try {
      channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
      channel.socket().connect(address, left(deadline, CONNECT_MILLIS));
      long end =
          Math.min(deadline, System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(HANDSHAKE_MILLIS));
      byte[] hello = new Handshake.Hello(Handshake.VERSION, launch.size(), launch.rank()).encode();
      write(channel, Message.HELLO, hello);
      byte[] challenge = read(channel, Message.CHALLENGE, launch.rank(), end);
      Handshake.checkChallenge(challenge);
      write(channel, Message.PROOF, Handshake.proof(secret, hello, challenge));
      byte[] welcome = read(channel, Message.WELCOME, launch.rank(), end);
      byte[] world = Handshake.checkWelcome(secret, hello, challenge, welcome);
      open = true;
      return new Greeting(channel, hello, challenge, world);
    } finally {
      if (!open) {
        closeQuietly(channel);
      }
    }
  }

  private static int left(long deadline, long most) throws IOException {
    long millis = TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime());
    if (millis <= 0) {
      throw new IOException("no answer in time");
    }
    return (int) Math.min(millis, most);
  }

  private static void write(SocketChannel channel, byte type, byte[] payload) throws IOException {
    // Less than any send buffer: it does not wait.
    channel.socket().getOutputStream().write(FrameDecoder.encode(type, payload, null));
  }

  private static byte[] read(SocketChannel channel, byte wanted, int rank, long deadline)
      throws IOException {
    FrameDecoder decoder = new FrameDecoder(Message.MAX_HANDSHAKE);
    DataInputStream in = new DataInputStream(channel.socket().getInputStream());
    byte[] one = new byte[1];
    FrameDecoder.Frame frame = null;
    // Byte by byte: what follows the frame belongs to the control thread, and slow bytes must not
    // win time.
    while (frame == null) {
      channel.socket().setSoTimeout(left(deadline, HANDSHAKE_MILLIS));
      in.readFully(one);
      frame = decoder.next(ByteBuffer.wrap(one));
    }
    if (frame.type() == Message.REFUSAL) {
      Handshake.Refusal refusal = Handshake.Refusal.decode(frame.payload());
      throw refusal
          .reason()
          .exception("rank 0 refuses rank %d: %s".formatted(rank, refusal.words()), rank);
    }
    if (frame.type() != wanted) {
      throw new ProtocolException(
          "a frame of type %d where %d is due".formatted(frame.type(), wanted));
    }
    return frame.payload();
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
    throw new IllegalStateException("only rank 0 listens");
  }

  @Override
  void received(Link link, FrameDecoder.Frame frame) throws IOException {
    byte[] payload = frame.payload();
    switch (frame.type()) {
      case Message.READY -> ready.complete(true);
      case Message.RESULT -> {
        if (Parts.number(payload) != round()) {
          throw new ProtocolException("the result of another round");
        }
        gathered(Parts.decode(payload, size));
      }
      case Message.ABORT -> fail(FailureCodec.decode(payload));
      case Message.HEARTBEAT -> {
        // That it arrived is all that it says.
      }
      case Message.LEAVE -> allLeft.complete(true);
      case Message.QUESTION -> {
        byte[] answer = answer(Arrays.copyOfRange(payload, Long.BYTES, payload.length));
        hub.send(
            Message.ANSWER,
            ByteBuffer.allocate(Long.BYTES + answer.length)
                .putLong(Parts.number(payload))
                .put(answer)
                .array());
      }
      case Message.ANSWERS -> answered(Parts.number(payload), Parts.decode(payload, size));
      default -> throw new ProtocolException("a frame of type %d".formatted(frame.type()));
    }
  }

  @Override
  void lost(Link link, IOException why) {
    link.close();
    if (!allLeft.isDone()) {
      fail(
          new PeerLostException(
              "rank 0 at %s is gone: %s".formatted(link.peerAddress(), why.getMessage()),
              Failure.remedy("look at the end of rank 0's output").withRank(rank).withPeer(0),
              why));
    }
  }

  @Override
  void contribute(long number, byte[] contribution) throws IOException {
    hub.send(
        Message.GATHER,
        ByteBuffer.allocate(Long.BYTES + contribution.length)
            .putLong(number)
            .put(contribution)
            .array());
  }

  @Override
  void ask(long number, byte[] question, long nanos) throws IOException {
    hub.send(
        Message.QUESTION,
        ByteBuffer.allocate(2 * Long.BYTES + question.length)
            .putLong(number)
            .putLong(nanos)
            .put(question)
            .array());
  }

  @Override
  void note(byte[] note) throws IOException {
    hub.send(Message.NOTE, note);
  }

  @Override
  void sendLeave() throws IOException {
    hub.send(Message.LEAVE, new byte[0]);
  }

  @Override
  void spread(MKernelException cause) {
    try {
      if (hub.isOpen()) {
        hub.send(Message.ABORT, FailureCodec.encode(cause));
      }
    } catch (IOException e) {
      LOG.debug("rank 0 could not be told", e);
    }
  }

  @Override
  void tick(long now) {
    if (hub.isOpen()) {
      watch(hub, now);
    }
  }

  @Override
  boolean isFlushed() {
    return hub.isFlushed() || !hub.isOpen();
  }

  @Override
  void closeLinks() {
    hub.close();
  }

  @Override
  void finishLinks() {
    hub.finish();
  }

  @Override
  boolean hasLinks() {
    return hub.isOpen();
  }
}
