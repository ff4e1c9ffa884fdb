package org.mkernel.kernels.host;

import java.nio.ByteBuffer;
import java.security.SecureRandom;
import java.util.OptionalInt;
import org.mkernel.api.Failure;
import org.mkernel.api.MismatchException;
import org.mkernel.api.UnavailableException;

/**
 * Memory of this process as a handle. Encoded it is magic, version, process, what tells it from a
 * process of another container that has the same number, address and size.
 *
 * @param address its start
 * @param bytes its size
 */
record MemoryHandle(long address, long bytes) {
  private static final int MAGIC = 0x6d6b736d;
  private static final int VERSION = 1;
  private static final int BYTES = 2 * Integer.BYTES + 4 * Long.BYTES;
  private static final long PROCESS = ProcessHandle.current().pid();
  private static final long NONCE = new SecureRandom().nextLong();

  byte[] encode() {
    return ByteBuffer.allocate(BYTES)
        .putInt(MAGIC)
        .putInt(VERSION)
        .putLong(PROCESS)
        .putLong(NONCE)
        .putLong(address)
        .putLong(bytes)
        .array();
  }

  /**
   * Reads a handle; it must be of this process.
   *
   * @param peer who sent it, where that is known
   */
  static MemoryHandle decode(OptionalInt peer, byte[] handle) {
    String sender = peer.isPresent() ? "rank " + peer.getAsInt() : "another rank";
    ByteBuffer in = ByteBuffer.wrap(handle);
    if (handle.length != BYTES || in.getInt() != MAGIC || in.getInt() != VERSION) {
      throw new MismatchException(
          "%s sent a memory handle of %d bytes that version %d can't read"
              .formatted(sender, handle.length, VERSION),
          failure("run the same version of mkernel everywhere", peer));
    }
    long process = in.getLong();
    long nonce = in.getLong();
    if (process != PROCESS || nonce != NONCE) {
      throw new UnavailableException(
          "%s is in process %d; this version maps memory within one process only"
              .formatted(sender, process),
          failure("put all ranks of a node into one process", peer));
    }
    return new MemoryHandle(in.getLong(), in.getLong());
  }

  private static Failure failure(String remedy, OptionalInt peer) {
    Failure failure = Failure.remedy(remedy);
    return peer.isPresent() ? failure.withPeer(peer.getAsInt()) : failure;
  }
}
