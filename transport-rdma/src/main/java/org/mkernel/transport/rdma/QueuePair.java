package org.mkernel.transport.rdma;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.security.SecureRandom;
import java.util.HexFormat;
import org.mkernel.api.DeviceException;
import org.mkernel.api.Failure;

/**
 * A reliable connection to one peer, and what is in flight on it. A transfer of more work requests
 * than the queue has room for is posted in parts; the next one starts when its last part is in.
 * Used by one thread.
 */
final class QueuePair implements AutoCloseable {
  private static final int NONE = -1;
  private static final SecureRandom RANDOM = new SecureRandom();
  private static final String[] STEPS = {"creation", "init", "ready to receive", "ready to send"};

  private final int peer;
  private final int depth;
  private final int part;
  private final int firstPacket;
  private final long handle;
  private final int number;
  private final int[] doneTransfer;
  private final int[] doneRequests;
  private final int mask;
  private long head;
  private long tail;
  private int inFlight;
  private int pending = NONE;
  private int pendingNext;
  private long pendingEpoch;
  private boolean closed;

  /**
   * Makes one, not connected.
   *
   * @param domain protection domain
   * @param completionQueue where its completions go
   * @param peer the rank at the other end
   * @param depth work requests in flight at most
   */
  QueuePair(long domain, long completionQueue, int peer, int depth) {
    this.peer = peer;
    this.depth = depth;
    this.part = Math.max(1, depth / 4);
    this.firstPacket = RANDOM.nextInt(1 << 24);
    int ring = Integer.highestOneBit(Math.max(1, 2 * depth - 1));
    this.doneTransfer = new int[ring];
    this.doneRequests = new int[ring];
    this.mask = ring - 1;
    this.handle =
        NativeCall.check(
            Verbs.createQueuePair(domain, completionQueue, depth),
            "a queue pair of %d work requests".formatted(depth));
    this.number = Verbs.queuePairNumber(handle);
  }

  int peer() {
    return peer;
  }

  int number() {
    return number;
  }

  /** Number of the first packet that it sends: drawn, so that old packets of others don't fit. */
  int firstPacket() {
    return firstPacket;
  }

  /** Connects to the other end, which need not be connected yet. */
  void connect(Adapter adapter, RdmaAddress remote, int peerNumber, int peerPacket) {
    RdmaAddress local = adapter.address();
    local.requireLinkTo(remote, Failure.UNKNOWN.withPeer(peer));
    int mtu = local.pathMtu(remote);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment connection = arena.allocate(Structs.CONNECTION);
      adapter.describe(connection);
      Structs.put(connection, Structs.CONNECTION, "mtu", mtuCode(mtu));
      Structs.put(connection, Structs.CONNECTION, "peer_qp", peerNumber);
      Structs.put(connection, Structs.CONNECTION, "psn", firstPacket);
      Structs.put(connection, Structs.CONNECTION, "peer_psn", peerPacket);
      Structs.put(connection, Structs.CONNECTION, "peer_lid", remote.lid());
      Structs.put(
          connection, Structs.CONNECTION, "global", local.global() || remote.global() ? 1 : 0);
      MemorySegment.copy(
          MemorySegment.ofArray(HexFormat.of().parseHex(remote.gid())),
          0,
          connection,
          Structs.offset(Structs.CONNECTION, "peer_gid"),
          Gid.BYTES);
      MemorySegment step = arena.allocate(ValueLayout.JAVA_INT);
      long result = Verbs.connect(handle, connection.address(), step.address());
      NativeCall.check(
          result,
          "connecting %s to %s of rank %d with an MTU of %d, step \"%s\","
              .formatted(
                  local.where(),
                  remote.where(),
                  peer,
                  mtu,
                  STEPS[step.get(ValueLayout.JAVA_INT, 0)]));
    }
  }

  /** libibverbs counts MTUs from 1 for 256 bytes. */
  private static int mtuCode(int bytes) {
    return Integer.numberOfTrailingZeros(bytes) - 7;
  }

  /** Posts a transfer, or its first part; false when there is no room yet. */
  boolean post(PreparedTransfers transfers, int transfer, long epoch) {
    if (pending != NONE) {
      return false;
    }
    int requests = transfers.requests(transfer);
    if (depth - inFlight < Math.min(requests, part)) {
      return false;
    }
    pending = transfer;
    pendingNext = 0;
    pendingEpoch = epoch;
    postPart(transfers);
    return true;
  }

  /** Posts what an accepted transfer still has to post; returns how many work requests. */
  int postRest(PreparedTransfers transfers) {
    return pending == NONE ? 0 : postPart(transfers);
  }

  private int postPart(PreparedTransfers transfers) {
    int rest = transfers.requests(pending) - pendingNext;
    int count = Math.min(rest, depth - inFlight);
    if (count < Math.min(rest, part)) {
      return 0;
    }
    long posted = Verbs.post(handle, transfers.address(pending), pendingNext, count, pendingEpoch);
    if (posted != count) {
      throw refused(count, posted);
    }
    int at = (int) tail++ & mask;
    doneTransfer[at] = count == rest ? pending : NONE;
    doneRequests[at] = count;
    inFlight += count;
    pendingNext += count;
    if (count == rest) {
      pending = NONE;
    }
    return count;
  }

  private DeviceException refused(int count, long posted) {
    if (posted < 0) {
      return NativeCall.failed(
          "posting %d work requests to rank %d".formatted(count, peer),
          (int) -posted,
          Verbs.error((int) -posted));
    }
    return new DeviceException(
        "the queue pair to rank %d took %d of %d work requests, of %d that it was made for"
            .formatted(peer, posted, count, depth),
        Failure.remedy("set %s lower".formatted(RdmaOptions.DEPTH)).withPeer(peer));
  }

  /**
   * A completion came: that of the oldest part in flight.
   *
   * @return the transfer that is done with it, or -1 when only a part of one is
   */
  int complete() {
    if (head == tail) {
      throw new IllegalStateException(
          "the adapter reports a completion to rank %d, and nothing is in flight".formatted(peer));
    }
    int at = (int) head++ & mask;
    inFlight -= doneRequests[at];
    return doneTransfer[at];
  }

  /** Work requests that are not complete. */
  int inFlight() {
    return inFlight;
  }

  /** Ends what is in flight: it is flushed, and the adapter touches memory no more. */
  void stop() {
    NativeCall.check(Verbs.stop(handle), "stopping the queue pair to rank %d".formatted(peer));
  }

  @Override
  public void close() {
    if (!closed) {
      closed = true;
      NativeCall.check(
          Verbs.destroyQueuePair(handle), "ending the queue pair to rank %d".formatted(peer));
    }
  }
}
