package org.mkernel.transport.rdma;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.mkernel.api.Failure;
import org.mkernel.api.UsageException;
import org.mkernel.api.spi.Transfer;

/** The transfers of a channel as the shim reads them, built once. */
final class PreparedTransfers {
  private final MemorySegment structs;
  private final int[] requests;
  private final int[] pair;

  /**
   * Lays them out.
   *
   * @param arena where
   * @param transfers what is sent
   * @param pairOfPeer the number of the queue pair, by rank
   * @param regions this rank's memory
   * @param offers all ranks' memory, by rank
   * @param messageBytes what one work request moves at most
   */
  PreparedTransfers(
      Arena arena,
      List<Transfer> transfers,
      int[] pairOfPeer,
      MemoryRegions regions,
      List<Offer> offers,
      long messageBytes) {
    int count = transfers.size();
    structs = arena.allocate(Structs.TRANSFER, Math.max(1, count));
    requests = new int[count];
    pair = new int[count];
    for (int number = 0; number < count; number++) {
      Transfer t = transfers.get(number);
      pair[number] = pairOfPeer[t.peer()];
      MemorySegment struct =
          structs.asSlice(number * Structs.TRANSFER.byteSize(), Structs.TRANSFER);
      requests[number] = fill(struct, t, regions, offers.get(t.peer()), messageBytes);
      Structs.put(struct, Structs.TRANSFER, "work_id", workId(pair[number], number));
    }
  }

  /** Fills a struct; returns how many work requests it stands for, the flag's included. */
  private static int fill(
      MemorySegment to, Transfer t, MemoryRegions regions, Offer peer, long messageBytes) {
    Offer.Memory flags = peer.spans().getFirst();
    Structs.put(to, Structs.TRANSFER, "flag", flags.address() + t.flagOffset());
    Structs.put(to, Structs.TRANSFER, "flag_rkey", flags.key());
    if (TransferCheck.isEmpty(t)) {
      return 1;
    }
    boolean isOneRun =
        t.rows() == 1 || (t.sourcePitch() == t.rowBytes() && t.pitch() == t.rowBytes());
    long rows = isOneRun ? 1 : t.rows();
    long rowBytes = isOneRun ? t.bytes() : t.rowBytes();
    long writes = Math.multiplyExact(rows, Math.ceilDiv(rowBytes, messageBytes));
    if (writes >= Integer.MAX_VALUE) {
      throw new UsageException(
          "%s is %d work requests; at most %d can be posted"
              .formatted(t, writes, Integer.MAX_VALUE - 1),
          Failure.UNKNOWN.withPeer(t.peer()));
    }
    Offer.Memory span = peer.spans().get(t.span());
    Structs.put(to, Structs.TRANSFER, "source", t.source());
    Structs.put(to, Structs.TRANSFER, "target", span.address() + t.offset());
    Structs.put(to, Structs.TRANSFER, "source_pitch", t.sourcePitch());
    Structs.put(to, Structs.TRANSFER, "pitch", t.pitch());
    Structs.put(to, Structs.TRANSFER, "row_bytes", rowBytes);
    Structs.put(to, Structs.TRANSFER, "rows", rows);
    Structs.put(to, Structs.TRANSFER, "message_bytes", messageBytes);
    Structs.put(to, Structs.TRANSFER, "writes", (int) writes);
    Structs.put(to, Structs.TRANSFER, "lkey", regions.keyOf(t));
    Structs.put(to, Structs.TRANSFER, "rkey", span.key());
    return (int) writes + 1;
  }

  static long workId(int pair, int transfer) {
    return (long) pair << 32 | transfer;
  }

  static int pairOf(long workId) {
    return (int) (workId >>> 32);
  }

  static int transferOf(long workId) {
    return (int) workId;
  }

  /** Where the struct of a transfer lies. */
  long address(int transfer) {
    return structs.address() + transfer * Structs.TRANSFER.byteSize();
  }

  /** How many work requests it is. */
  int requests(int transfer) {
    return requests[transfer];
  }

  /** The queue pair that it goes by. */
  int pair(int transfer) {
    return pair[transfer];
  }
}
