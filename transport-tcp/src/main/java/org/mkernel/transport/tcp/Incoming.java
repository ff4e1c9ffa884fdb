package org.mkernel.transport.tcp;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.List;

/** A transfer as the receiver prepared it: where its pieces go, and which have come. */
final class Incoming {
  private final int peer;
  private final FlagGate flag;
  private final ByteBuffer[][] views;
  private final long[] lengths;
  private final long[] arrived;

  /**
   * Prepares a transfer.
   *
   * @param peer who sends it
   * @param flag its flag, shared with the transfers of other epochs that raise it
   * @param pieces what each piece fills
   * @param lengths bytes of each piece
   */
  Incoming(int peer, FlagGate flag, List<List<ByteBuffer>> pieces, long[] lengths) {
    this.peer = peer;
    this.flag = flag;
    this.lengths = lengths.clone();
    this.arrived = new long[lengths.length];
    this.views = new ByteBuffer[pieces.size()][];
    for (int piece = 0; piece < views.length; piece++) {
      // One more place: the header of the next frame is read with the end of this one.
      views[piece] = pieces.get(piece).toArray(new ByteBuffer[pieces.get(piece).size() + 1]);
    }
  }

  int peer() {
    return peer;
  }

  int pieces() {
    return views.length;
  }

  long length(int piece) {
    return lengths[piece];
  }

  /** The epoch in which a piece came last. */
  long arrived(int piece) {
    return arrived[piece];
  }

  /** The buffers of a piece from their start, with the header of the next frame behind them. */
  ByteBuffer[] rewind(int piece, ByteBuffer header) {
    ByteBuffer[] parts = views[piece];
    for (int i = 0; i < parts.length - 1; i++) {
      parts[i].clear();
    }
    parts[parts.length - 1] = header.clear();
    return parts;
  }

  /** All bytes of a piece are here; the flag may be raised once all pieces are. */
  void complete(int piece, long epoch) throws IOException {
    arrived[piece] = epoch;
    for (long other : arrived) {
      if (other < epoch) {
        return;
      }
    }
    flag.complete(epoch);
  }
}
