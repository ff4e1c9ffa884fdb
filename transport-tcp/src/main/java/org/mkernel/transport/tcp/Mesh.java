package org.mkernel.transport.tcp;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketTimeoutException;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.mkernel.api.Failure;
import org.mkernel.api.MismatchException;
import org.mkernel.api.PeerLostException;
import org.mkernel.api.UnavailableException;
import org.mkernel.api.spi.TransportProvider;

/**
 * Connects a rank with all ranks of other nodes: the lower rank connects, the higher one listens.
 */
final class Mesh {
  private static final int VERSION = 1;
  private static final long DEADLINE_NANOS = TimeUnit.SECONDS.toNanos(30);
  private static final long HANDSHAKE_NANOS = TimeUnit.SECONDS.toNanos(5);
  private static final int ACCEPT_MILLIS = 50;
  private static final long RETRY_NANOS = TimeUnit.MILLISECONDS.toNanos(20);

  /** Connections at once that have not proven anything. */
  private static final int MAX_STRANGERS = 64;

  private static final int BACKLOG = 512;

  private final TransportProvider.Context context;
  private final TcpOptions options;
  private final int rank;
  private final int size;
  private final long deadline = System.nanoTime() + DEADLINE_NANOS;
  private final AtomicReferenceArray<@Nullable SocketChannel> slots;
  private final AtomicInteger strangers = new AtomicInteger();
  private volatile boolean done;

  Mesh(TransportProvider.Context context, TcpOptions options) {
    this.context = context;
    this.options = options;
    this.rank = context.rank();
    this.size = context.topology().size();
    this.slots = new AtomicReferenceArray<>(Math.multiplyExact(size, options.streams()));
  }

  SocketChannel[][] connect() {
    boolean connected = false;
    try (ServerSocketChannel server = ServerSocketChannel.open()) {
      server.bind(new InetSocketAddress(options.address(), 0), BACKLOG);
      List<InetSocketAddress> addresses = addresses((InetSocketAddress) server.getLocalAddress());
      Thread acceptor = context.threads().newThread(() -> accept(server));
      acceptor.setName("mkernel-tcp-accept-" + rank);
      acceptor.setDaemon(true);
      acceptor.start();
      for (int peer = rank + 1; peer < size; peer++) {
        for (int stream = 0; isPeer(peer) && stream < options.streams(); stream++) {
          slots.set(peer * options.streams() + stream, connect(peer, addresses.get(peer), stream));
        }
      }
      awaitLower();
      connected = true;
      return sockets();
    } catch (IOException e) {
      throw new UnavailableException(
          "rank %d can't listen at %s: %s".formatted(rank, options.address(), e.getMessage()),
          Failure.remedy("set the option tcp.address to an address of this host").withRank(rank),
          e);
    } finally {
      done = true;
      if (!connected) {
        close(sockets());
      }
    }
  }

  private boolean isPeer(int peer) {
    return peer != rank && !context.topology().sameNode(peer, rank);
  }

  private List<InetSocketAddress> addresses(InetSocketAddress own) throws IOException {
    byte[] address = own.getAddress().getAddress();
    List<byte[]> all =
        context
            .exchange()
            .allGather(
                ByteBuffer.allocate(3 * Integer.BYTES + address.length)
                    .putInt(VERSION)
                    .putInt(options.streams())
                    .putInt(own.getPort())
                    .put(address)
                    .array());
    List<InetSocketAddress> addresses = new ArrayList<>();
    for (int peer = 0; peer < size; peer++) {
      ByteBuffer in = ByteBuffer.wrap(all.get(peer));
      if (in.remaining() < 3 * Integer.BYTES
          || in.getInt() != VERSION
          || in.getInt() != options.streams()) {
        throw new MismatchException(
            "rank %d has version %d and %d connections to each peer; rank %d has others"
                .formatted(rank, VERSION, options.streams(), peer),
            Failure.remedy("give all ranks the same option tcp.streams and version of mkernel")
                .withRank(rank)
                .withPeer(peer));
      }
      int port = in.getInt();
      byte[] host = new byte[in.remaining()];
      in.get(host);
      addresses.add(new InetSocketAddress(InetAddress.getByAddress(host), port));
    }
    return addresses;
  }

  private SocketChannel connect(int peer, InetSocketAddress address, int stream) {
    IOException last = new IOException("there was no time to try");
    while (deadline - System.nanoTime() > 0) {
      SocketChannel socket = null;
      try {
        socket = SocketChannel.open();
        socket.setOption(StandardSocketOptions.TCP_NODELAY, true);
        socket.socket().connect(address, (int) TimeUnit.NANOSECONDS.toMillis(HANDSHAKE_NANOS));
        new Handshake(rank, stream)
            .offer(
                socket.socket(),
                options.key(),
                Math.min(deadline, System.nanoTime() + HANDSHAKE_NANOS));
        return socket;
      } catch (IOException e) {
        last = e;
        close(socket);
        LockSupport.parkNanos(RETRY_NANOS);
      }
    }
    throw new PeerLostException(
        "rank %d did not connect to rank %d at %s within %d s: %s"
            .formatted(
                rank,
                peer,
                address,
                TimeUnit.NANOSECONDS.toSeconds(DEADLINE_NANOS),
                last.getMessage()),
        Failure.remedy(
                "look whether this host reaches %s; set the option tcp.address of rank %d if it"
                        .formatted(address.getHostString(), peer)
                    + " has a better one")
            .withRank(rank)
            .withPeer(peer),
        last);
  }

  /** Accepts until all lower ranks are here; each handshake runs on a thread of its own. */
  private void accept(ServerSocketChannel server) {
    try {
      server.socket().setSoTimeout(ACCEPT_MILLIS);
      while (!done && deadline - System.nanoTime() > 0) {
        try {
          // Through the socket, since only its accept has a time limit.
          SocketChannel socket = server.socket().accept().getChannel();
          if (strangers.incrementAndGet() > MAX_STRANGERS) {
            strangers.decrementAndGet();
            close(socket);
            continue;
          }
          Thread thread = context.threads().newThread(() -> greet(socket));
          thread.setName("mkernel-tcp-greet-" + rank);
          thread.setDaemon(true);
          thread.start();
        } catch (SocketTimeoutException e) {
          // Time to look whether all are here.
        }
      }
    } catch (IOException e) {
      // The socket was closed: whoever waits for a lower rank finds its connection missing.
      return;
    }
  }

  private void greet(SocketChannel socket) {
    boolean taken = false;
    try {
      socket.setOption(StandardSocketOptions.TCP_NODELAY, true);
      Handshake who =
          Handshake.accept(socket.socket(), options.key(), System.nanoTime() + HANDSHAKE_NANOS);
      boolean expected =
          who.rank() >= 0
              && who.rank() < rank
              && isPeer(who.rank())
              && who.stream() >= 0
              && who.stream() < options.streams();
      taken =
          expected
              && !done
              && slots.compareAndSet(who.rank() * options.streams() + who.stream(), null, socket);
    } catch (IOException e) {
      taken = false;
    } finally {
      strangers.decrementAndGet();
      if (!taken) {
        close(socket);
      }
    }
  }

  private void awaitLower() {
    for (int peer = 0; peer < rank; peer++) {
      for (int stream = 0; isPeer(peer) && stream < options.streams(); stream++) {
        while (slots.get(peer * options.streams() + stream) == null) {
          if (deadline - System.nanoTime() < 0 || Thread.currentThread().isInterrupted()) {
            throw new PeerLostException(
                "rank %d did not connect to rank %d within %d s"
                    .formatted(peer, rank, TimeUnit.NANOSECONDS.toSeconds(DEADLINE_NANOS)),
                Failure.remedy("look at the output of rank %d".formatted(peer))
                    .withRank(rank)
                    .withPeer(peer));
          }
          LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(1));
        }
      }
    }
  }

  private SocketChannel[][] sockets() {
    SocketChannel[][] all = new SocketChannel[size][];
    for (int peer = 0; peer < size; peer++) {
      List<SocketChannel> of = new ArrayList<>();
      for (int stream = 0; stream < options.streams(); stream++) {
        SocketChannel socket = slots.get(peer * options.streams() + stream);
        if (socket != null) {
          of.add(socket);
        }
      }
      all[peer] = of.toArray(SocketChannel[]::new);
    }
    return all;
  }

  static void close(SocketChannel[][] sockets) {
    for (SocketChannel[] of : sockets) {
      for (SocketChannel socket : of) {
        close(socket);
      }
    }
  }

  private static void close(@Nullable SocketChannel socket) {
    try {
      if (socket != null) {
        socket.close();
      }
    } catch (IOException e) {
      // Nobody counts on it any more.
      return;
    }
  }
}
