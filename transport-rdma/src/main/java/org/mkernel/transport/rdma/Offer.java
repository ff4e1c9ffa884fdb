package org.mkernel.transport.rdma;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import org.mkernel.api.Failure;
import org.mkernel.api.MismatchException;

/**
 * What a rank tells the others before they connect.
 *
 * @param address where it is
 * @param spans its memory that may be written
 * @param peers the ranks that it sends to
 */
record Offer(RdmaAddress address, List<Memory> spans, List<Integer> peers) {
  private static final int MAGIC = 0x6d6b7264;
  static final int VERSION = 1;

  /**
   * Memory that peers may write.
   *
   * @param address where it starts there
   * @param bytes its size
   * @param key what proves the right to write it; 0 when it is empty
   */
  record Memory(long address, long bytes, int key) {}

  byte[] encode() {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (DataOutputStream out = new DataOutputStream(bytes)) {
      out.writeInt(MAGIC);
      out.writeInt(VERSION);
      out.writeUTF(address.where());
      out.writeBoolean(address.ethernet());
      out.writeBoolean(address.global());
      out.writeInt(address.lid());
      out.writeInt(address.mtu());
      out.writeUTF(address.gid());
      out.writeInt(spans.size());
      for (Memory span : spans) {
        out.writeLong(span.address());
        out.writeLong(span.bytes());
        out.writeInt(span.key());
      }
      out.writeInt(peers.size());
      for (int peer : peers) {
        out.writeInt(peer);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return bytes.toByteArray();
  }

  static Offer decode(int rank, byte[] bytes) {
    try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes))) {
      int magic = in.readInt();
      int version = in.readInt();
      if (magic != MAGIC || version != VERSION) {
        throw new MismatchException(
            "rank %d offers RDMA in version %d of its message (mark %08x); version %d is needed"
                .formatted(rank, version, magic, VERSION),
            Failure.remedy("let all ranks run the same version of mkernel").withPeer(rank));
      }
      RdmaAddress address =
          new RdmaAddress(
              in.readUTF(),
              in.readBoolean(),
              in.readBoolean(),
              in.readInt(),
              in.readInt(),
              in.readUTF());
      List<Memory> spans = new ArrayList<>();
      for (int count = in.readInt(); count > 0; count--) {
        spans.add(new Memory(in.readLong(), in.readLong(), in.readInt()));
      }
      List<Integer> peers = new ArrayList<>();
      for (int count = in.readInt(); count > 0; count--) {
        peers.add(in.readInt());
      }
      if (in.read() >= 0 || !address.gid().matches("[0-9a-f]{32}")) {
        throw new IOException("it holds more or other than it should");
      }
      return new Offer(address, List.copyOf(spans), List.copyOf(peers));
    } catch (IOException e) {
      throw new MismatchException(
          "rank %d sent an RDMA message of %d bytes that can't be read: %s"
              .formatted(rank, bytes.length, e.getMessage()),
          Failure.remedy("let all ranks run the same version of mkernel").withPeer(rank),
          e);
    }
  }
}
