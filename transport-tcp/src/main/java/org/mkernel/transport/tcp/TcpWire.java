package org.mkernel.transport.tcp;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.mkernel.api.Failure;
import org.mkernel.api.MismatchException;
import org.mkernel.api.UnavailableException;
import org.mkernel.api.UsageException;
import org.mkernel.api.spi.Span;
import org.mkernel.api.spi.Transfer;
import org.mkernel.api.spi.TransportProvider;
import org.mkernel.api.spi.Wire;

/** The wire of one rank. All its channels share the connections. */
final class TcpWire implements Wire {
  private static final int FLAG_BYTES = Long.BYTES;
  private static final long TURN_BYTES = 4 << 20;
  private static final int DISCARD_BYTES = 1 << 16;

  private final TransportProvider.Context context;
  private final TcpOptions options;
  private final SocketChannel[][] sockets;
  private final SendStream[][] sending;
  private final Receiver receiver;
  private final Inbox inbox = new Inbox();
  private final LostPeers lost;
  private int opened;
  private volatile boolean stopped;

  private TcpWire(TransportProvider.Context context, TcpOptions options, SocketChannel[][] sockets)
      throws IOException {
    this.context = context;
    this.options = options;
    this.sockets = sockets;
    this.sending = new SendStream[sockets.length][];
    this.lost = new LostPeers(sockets.length);
    List<ReceiveStream> receiving = new ArrayList<>();
    ByteBuffer discarded = ByteBuffer.allocateDirect(DISCARD_BYTES);
    for (int peer = 0; peer < sockets.length; peer++) {
      sending[peer] = new SendStream[sockets[peer].length];
      for (int stream = 0; stream < sockets[peer].length; stream++) {
        sending[peer][stream] = new SendStream(sockets[peer][stream], options.queue());
        receiving.add(new ReceiveStream(peer, sockets[peer][stream], inbox, discarded));
      }
    }
    this.receiver = new Receiver(context.rank(), receiving, lost, context.threads());
  }

  static TcpWire open(TransportProvider.Context context, TcpOptions options) {
    SocketChannel[][] sockets = new Mesh(context, options).connect();
    try {
      TcpWire wire = new TcpWire(context, options, sockets);
      wire.receiver.start();
      return wire;
    } catch (IOException e) {
      Mesh.close(sockets);
      throw new UnavailableException(
          "rank %d can't set its connections up: %s".formatted(context.rank(), e),
          Failure.remedy("raise the limit of open files (ulimit -n)").withRank(context.rank()),
          e);
    }
  }

  @Override
  public Channel open(String operation, List<Span> spans, List<Transfer> transfers) {
    int number = ++opened;
    for (int i = 0; i < transfers.size(); i++) {
      check(operation, i, transfers.get(i));
    }
    List<byte[]> all = context.exchange().allGather(Announcement.encode(transfers));
    List<Map<Integer, Incoming>> incoming = new ArrayList<>();
    for (int peer = 0; peer < all.size(); peer++) {
      Map<Integer, Incoming> of = new HashMap<>();
      Map<Long, FlagGate> flags = new HashMap<>();
      int from = peer;
      Announcement.decode(
          peer,
          all.get(peer),
          (i, t) -> {
            if (t.peer() == context.rank()) {
              of.put(i, incoming(operation, from, i, t, spans, flags));
            }
          });
      incoming.add(of);
    }
    Inbox.Table table = new Inbox.Table(number, incoming);
    inbox.open(table);
    return new TcpChannel(this, number, table, transfers, options.streams());
  }

  private Incoming incoming(
      String operation, int from, int i, Transfer t, List<Span> spans, Map<Long, FlagGate> flags) {
    checkTarget(operation, from, i, t, spans);
    int count = Pieces.count(t.bytes(), options.streams());
    long[] lengths = new long[count];
    List<List<ByteBuffer>> views = new ArrayList<>();
    for (int piece = 0; piece < count; piece++) {
      long start = Pieces.start(t.bytes(), count, piece);
      long end = Pieces.start(t.bytes(), count, piece + 1);
      lengths[piece] = end - start;
      views.add(
          start == end
              ? List.of()
              : Memory.views(
                  spans.get(t.span()).address() + t.offset(),
                  t.pitch(),
                  t.rowBytes(),
                  t.rows(),
                  start,
                  end));
    }
    FlagGate flag =
        flags.computeIfAbsent(
            t.flagOffset(), offset -> new FlagGate(spans.getFirst().address() + offset));
    return new Incoming(from, flag, views, lengths);
  }

  private void check(String operation, int number, Transfer t) {
    int size = context.topology().size();
    boolean peer = t.peer() >= 0 && t.peer() < size && sockets[t.peer()].length > 0;
    boolean sizes = t.rows() >= 0 && t.rowBytes() >= 0;
    boolean pitch = t.rows() <= 1 || t.sourcePitch() >= t.rowBytes();
    if (!peer || !sizes || !pitch || (t.bytes() > 0 && t.source() == 0)) {
      throw new UsageException(
          "transfer %d of %s on rank %d is %s; needed are a rank of another node, sizes of at least 0, pitches of at least a row, a source"
              .formatted(number, operation, context.rank(), t),
          failure(operation, t.peer()));
    }
  }

  private void checkTarget(String operation, int from, int number, Transfer t, List<Span> spans) {
    long flags = spans.isEmpty() ? 0 : spans.getFirst().bytes();
    boolean flag =
        t.flagOffset() >= 0
            && t.flagOffset() % FLAG_BYTES == 0
            && t.flagOffset() <= flags - FLAG_BYTES;
    boolean fits = t.rows() >= 0 && t.rowBytes() >= 0 && t.offset() >= 0;
    if (fits && t.rows() > 0 && t.rowBytes() > 0) {
      fits = t.span() >= 0 && t.span() < spans.size();
      long room = fits ? spans.get(t.span()).bytes() - t.offset() - t.rowBytes() : -1;
      fits =
          room >= 0
              && (t.rows() == 1 || (t.pitch() >= t.rowBytes() && room / t.pitch() >= t.rows() - 1));
    }
    if (!flag || !fits) {
      throw new MismatchException(
          "transfer %d of %s from rank %d to rank %d does not fit: it is %s, here are %s"
              .formatted(number, operation, from, context.rank(), t, spans),
          failure(operation, from));
    }
  }

  private Failure failure(String operation, int peer) {
    return Failure.UNKNOWN.withRank(context.rank()).withPeer(peer).withOperation(operation);
  }

  SendStream[] streams(int peer) {
    return sending[peer];
  }

  LostPeers lost() {
    return lost;
  }

  /**
   * Writes what connections take.
   *
   * @return bytes written
   */
  long progress() {
    long moved = 0;
    for (int peer = 0; peer < sending.length && !stopped; peer++) {
      if (lost.isLost(peer)) {
        continue;
      }
      try {
        for (SendStream stream : sending[peer]) {
          if (!stream.isIdle()) {
            moved += stream.progress(TURN_BYTES);
          }
        }
      } catch (IOException e) {
        lost.add(peer, String.valueOf(e.getMessage()));
      }
    }
    return moved;
  }

  /** The world is dead: nothing is written any more. */
  void stop() {
    stopped = true;
  }

  /** An operation was closed: what comes for it is read away, and its memory is let go of. */
  void closed(Inbox.Table table) {
    inbox.close(table);
    if (!receiver.awaitTurn()) {
      throw new UnavailableException(
          "the receiver of rank %d does not let go of memory; it is kept".formatted(context.rank()),
          Failure.remedy("look for a machine that is out of processors"));
    }
  }

  @Override
  public void close() {
    stopped = true;
    receiver.close();
    Mesh.close(sockets);
  }
}
