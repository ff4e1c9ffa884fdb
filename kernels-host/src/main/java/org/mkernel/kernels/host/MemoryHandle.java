package org.mkernel.kernels.host;

import java.lang.foreign.Arena;
import java.nio.ByteBuffer;
import java.security.SecureRandom;
import java.util.Optional;
import java.util.OptionalInt;
import org.mkernel.api.Failure;
import org.mkernel.api.MismatchException;
import org.mkernel.api.UnavailableException;

/**
 * Memory of a process as a handle. Encoded it is magic, version, process, what tells it from a
 * process of another container that has the same number, address, size; and, where other processes
 * can map it, the segment that holds it: descriptor, number, size, and where in it the memory lies.
 *
 * @param process the number of the process
 * @param nonce what tells it from others with that number
 * @param address the start of the memory there
 * @param bytes its size
 * @param descriptor the descriptor of the segment there, −1 for none
 * @param segment the segment's name
 * @param segmentBytes the segment's size
 * @param offset where in it the memory starts
 */
record MemoryHandle(
    long process,
    long nonce,
    long address,
    long bytes,
    int descriptor,
    String segment,
    long segmentBytes,
    long offset) {
  /** What tells this process from others. */
  static final long NONCE = new SecureRandom().nextLong();

  private static final int MAGIC = 0x6d6b736d;
  private static final int VERSION = 2;
  private static final int NAME_BYTES = 64;
  private static final int BYTES = 3 * Integer.BYTES + 6 * Long.BYTES + NAME_BYTES;
  private static final long PROCESS = ProcessHandle.current().pid();

  /** Memory of this process. */
  static MemoryHandle of(long address, long bytes) {
    Optional<SharedSegment> shared = SharedSegment.holding(address, bytes);
    return new MemoryHandle(
        PROCESS,
        NONCE,
        address,
        bytes,
        shared.map(SharedSegment::descriptor).orElse(-1),
        shared.map(SharedSegment::name).orElse(""),
        shared.map(SharedSegment::bytes).orElse(0L),
        shared.map(s -> address - s.address()).orElse(0L));
  }

  /** Whether other processes can map it. */
  boolean isShared() {
    return descriptor >= 0;
  }

  byte[] encode() {
    ByteBuffer out =
        ByteBuffer.allocate(BYTES)
            .putInt(MAGIC)
            .putInt(VERSION)
            .putLong(process)
            .putLong(nonce)
            .putLong(address)
            .putLong(bytes)
            .putInt(descriptor)
            .putLong(segmentBytes)
            .putLong(offset);
    out.put(segment.getBytes(java.nio.charset.StandardCharsets.US_ASCII));
    return out.array();
  }

  /**
   * Reads a handle.
   *
   * @param peer who sent it, where that is known
   */
  static MemoryHandle decode(OptionalInt peer, byte[] handle) {
    ByteBuffer in = ByteBuffer.wrap(handle);
    if (handle.length != BYTES || in.getInt() != MAGIC || in.getInt() != VERSION) {
      throw new MismatchException(
          "%s sent a memory handle of %d bytes that version %d can't read"
              .formatted(sender(peer), handle.length, VERSION),
          failure("run the same version of mkernel everywhere", peer));
    }
    long process = in.getLong();
    long nonce = in.getLong();
    long address = in.getLong();
    long bytes = in.getLong();
    int descriptor = in.getInt();
    long segmentBytes = in.getLong();
    long offset = in.getLong();
    byte[] name = new byte[NAME_BYTES];
    in.get(name);
    if (descriptor >= 0
        && (bytes < 0 || offset < 0 || offset > segmentBytes || bytes > segmentBytes - offset)) {
      throw new MismatchException(
          "%s announces %d bytes at %d of a segment of %d bytes"
              .formatted(sender(peer), bytes, offset, segmentBytes),
          failure("run the same version of mkernel everywhere", peer));
    }
    return new MemoryHandle(
        process,
        nonce,
        address,
        bytes,
        descriptor,
        new String(name, java.nio.charset.StandardCharsets.US_ASCII).strip().replace("\0", ""),
        segmentBytes,
        offset);
  }

  /** Whether it is of this process. */
  boolean isOwn() {
    return process == PROCESS && nonce == NONCE;
  }

  /**
   * Where the memory lies here.
   *
   * @param peer who sent it, where that is known
   * @param arena what a mapping lives in
   * @return the address
   */
  long map(OptionalInt peer, Arena arena) {
    if (isOwn()) {
      return address;
    }
    if (!isShared()) {
      throw new UnavailableException(
          "%s is in process %d, and its memory is not shared".formatted(sender(peer), process),
          failure("let the rank allocate the tensor itself", peer));
    }
    return SharedSegment.mapOf(process, descriptor, segment, segmentBytes, arena) + offset;
  }

  private static String sender(OptionalInt peer) {
    return peer.isPresent() ? "rank " + peer.getAsInt() : "another rank";
  }

  private static Failure failure(String remedy, OptionalInt peer) {
    Failure failure = Failure.remedy(remedy);
    return peer.isPresent() ? failure.withPeer(peer.getAsInt()) : failure;
  }
}
