package org.mkernel.transport.tcp;

import java.util.Arrays;
import java.util.List;
import org.mkernel.api.spi.Transfer;
import org.mkernel.api.spi.Wire;

/** The transfers of one operation on one rank. Bytes move when the proxy polls. */
final class TcpChannel implements Wire.Channel {
  private final TcpWire wire;
  private final int number;
  private final Inbox.Table table;
  private final int[] peers;
  private final Outgoing[][] pieces;
  private final int[] left;
  private final int[] done;
  private int doneCount;
  private int outstanding;
  private volatile boolean stopped;

  TcpChannel(TcpWire wire, int number, Inbox.Table table, List<Transfer> transfers, int streams) {
    this.wire = wire;
    this.number = number;
    this.table = table;
    this.peers = new int[transfers.size()];
    this.pieces = new Outgoing[transfers.size()][];
    this.left = new int[transfers.size()];
    this.done = new int[transfers.size()];
    for (int i = 0; i < peers.length; i++) {
      Transfer t = transfers.get(i);
      peers[i] = t.peer();
      int count = Pieces.count(t.bytes(), streams);
      pieces[i] = new Outgoing[count];
      for (int piece = 0; piece < count; piece++) {
        long from = Pieces.start(t.bytes(), count, piece);
        long to = Pieces.start(t.bytes(), count, piece + 1);
        pieces[i][piece] =
            new Outgoing(
                this,
                i,
                piece,
                to - from,
                Memory.views(t.source(), t.sourcePitch(), t.rowBytes(), t.rows(), from, to));
      }
    }
  }

  int number() {
    return number;
  }

  @Override
  public boolean post(int transfer, long epoch) {
    if (stopped) {
      return false;
    }
    SendStream[] streams = wire.streams(peers[transfer]);
    Outgoing[] all = pieces[transfer];
    int first = all.length == streams.length ? 0 : Math.floorMod(transfer, streams.length);
    for (int piece = 0; piece < all.length; piece++) {
      if (!streams[(first + piece) % streams.length].hasRoom(1)) {
        return false;
      }
    }
    for (int piece = 0; piece < all.length; piece++) {
      streams[(first + piece) % streams.length].add(all[piece], epoch);
    }
    left[transfer] = all.length;
    outstanding++;
    return true;
  }

  /** A piece was written; the wire calls, from the poll of any channel of the rank. */
  void sent(int transfer) {
    if (--left[transfer] == 0) {
      done[doneCount++] = transfer;
    }
  }

  @Override
  public int poll(Wire.Completions completions) {
    if (stopped || outstanding == 0) {
      return 0;
    }
    long moved = wire.progress();
    int count = doneCount;
    for (int i = 0; i < count; i++) {
      outstanding--;
      completions.completed(done[i]);
    }
    doneCount = 0;
    if (count == 0 && wire.lost().any()) {
      count = reportLost(completions);
    }
    return count + (moved > 0 ? 1 : 0);
  }

  private int reportLost(Wire.Completions completions) {
    for (int transfer = 0; transfer < left.length; transfer++) {
      String reason = left[transfer] > 0 ? wire.lost().reason(peers[transfer]) : null;
      if (reason != null) {
        stopped = true;
        completions.failed(
            transfer,
            reason,
            0,
            "look at the output of rank %d, and at the network to it".formatted(peers[transfer]));
        return 1;
      }
    }
    return 0;
  }

  @Override
  public void abort() {
    stopped = true;
    wire.stop();
  }

  @Override
  public void close() {
    stopped = true;
    if (Arrays.stream(left).anyMatch(pieces -> pieces > 0)) {
      wire.stop();
    }
    wire.closed(table);
  }
}
