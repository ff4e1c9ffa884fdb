package org.mkernel.runtime;

import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import org.mkernel.api.Failure;
import org.mkernel.api.MismatchException;
import org.mkernel.api.UnavailableException;
import org.mkernel.api.spi.Span;

/** What ranks of an emulated wire tell each other: who they are and where peers may write. */
final class EmulatedHandle {
  private static final int MAGIC = 0x6d6b4557;
  private static final int VERSION = 1;
  private static final int HEAD_BYTES = 2 * Integer.BYTES + 3 * Long.BYTES + Integer.BYTES;
  private static final int SPAN_BYTES = 2 * Long.BYTES;

  /** Tells this process from any other, on this machine or another one. */
  private static final UUID PROCESS = UUID.randomUUID();

  private EmulatedHandle() {}

  static byte[] encode(List<Span> spans) {
    return encode(PROCESS, ProcessHandle.current().pid(), spans);
  }

  static byte[] encode(UUID process, long pid, List<Span> spans) {
    ByteBuffer out = ByteBuffer.allocate(HEAD_BYTES + spans.size() * SPAN_BYTES);
    out.putInt(MAGIC).putInt(VERSION);
    out.putLong(process.getMostSignificantBits()).putLong(process.getLeastSignificantBits());
    out.putLong(pid).putInt(spans.size());
    spans.forEach(span -> out.putLong(span.address()).putLong(span.bytes()));
    return out.array();
  }

  /**
   * Reads what a peer sent.
   *
   * @param peer the peer, for messages
   * @param bytes what it sent
   * @return its spans
   * @throws UnavailableException when the peer is in another process
   * @throws MismatchException when it is no emulated wire of this version
   */
  static List<Span> decode(int peer, byte[] bytes) {
    ByteBuffer in = ByteBuffer.wrap(bytes);
    try {
      int magic = in.getInt();
      int version = in.getInt();
      if (magic != MAGIC || version != VERSION) {
        throw new MismatchException(
            "rank %d answers with magic 0x%x, version %d; the emulated wire needs 0x%x, version %d"
                .formatted(peer, magic, version, MAGIC, VERSION),
            Failure.remedy("give all ranks the same transport and version of mkernel")
                .withPeer(peer));
      }
      UUID process = new UUID(in.getLong(), in.getLong());
      long pid = in.getLong();
      if (!process.equals(PROCESS)) {
        throw new UnavailableException(
            "rank %d is in another process (id %d); the emulated wire works inside one process"
                .formatted(peer, pid),
            Failure.remedy("set the option transport to a network, as tcp or rdma").withPeer(peer));
      }
      int count = in.getInt();
      if (count < 0 || in.remaining() != (long) count * SPAN_BYTES) {
        throw new MismatchException(
            "rank %d announces %d spans in %d bytes".formatted(peer, count, in.remaining()),
            Failure.UNKNOWN.withPeer(peer));
      }
      List<Span> spans = new ArrayList<>(count);
      for (int span = 0; span < count; span++) {
        spans.add(new Span(in.getLong(), in.getLong()));
      }
      return List.copyOf(spans);
    } catch (BufferUnderflowException e) {
      throw new MismatchException(
          "rank %d sent %d bytes, which is no handle of the emulated wire"
              .formatted(peer, bytes.length),
          Failure.UNKNOWN.withPeer(peer),
          e);
    }
  }
}
