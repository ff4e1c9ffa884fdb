package org.mkernel.transport.tcp;

import java.nio.ByteBuffer;
import java.util.List;

/** A piece of a transfer as the sender prepared it. */
final class Outgoing {
  final TcpChannel channel;
  final int transfer;
  final int piece;
  final long length;

  /** The header's place, then the payload. */
  final ByteBuffer[] parts;

  Outgoing(TcpChannel channel, int transfer, int piece, long length, List<ByteBuffer> views) {
    this.channel = channel;
    this.transfer = transfer;
    this.piece = piece;
    this.length = length;
    this.parts = new ByteBuffer[1 + views.size()];
    for (int i = 0; i < views.size(); i++) {
      parts[1 + i] = views.get(i);
    }
  }

  /** Makes it ready to be written from its start. */
  void rewind(ByteBuffer header) {
    parts[0] = header;
    for (int i = 1; i < parts.length; i++) {
      parts[i].clear();
    }
  }
}
