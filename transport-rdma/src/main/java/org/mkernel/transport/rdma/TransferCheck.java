package org.mkernel.transport.rdma;

import java.util.List;
import org.mkernel.api.Failure;
import org.mkernel.api.MismatchException;
import org.mkernel.api.UsageException;
import org.mkernel.api.spi.Transfer;

/**
 * Refuses transfers that an adapter would refuse later, and with less to say.
 *
 * @param operation the operation, for messages
 * @param rank who sends
 * @param world how many ranks there are
 */
record TransferCheck(String operation, int rank, int world) {
  private static final int FLAG_BYTES = Long.BYTES;

  /** What can be seen here alone: done before anything is exchanged. */
  void requireSound(int number, Transfer t) {
    boolean negative = t.rows() < 0 || t.rowBytes() < 0 || t.offset() < 0 || t.flagOffset() < 0;
    boolean overlaps = t.rows() > 1 && (t.pitch() < t.rowBytes() || t.sourcePitch() < t.rowBytes());
    boolean isForPeer = t.peer() >= 0 && t.peer() < world && t.peer() != rank;
    if (!isForPeer
        || negative
        || overlaps
        || t.flagOffset() % FLAG_BYTES != 0
        || (!isEmpty(t) && t.source() == 0)) {
      throw new UsageException(
          ("transfer %d of %s on rank %d of %d is %s; needed are another rank, sizes of at least 0,"
                  + " pitches of at least a row, a source, a flag at a multiple of 8")
              .formatted(number, operation, rank, world, t),
          failure(t));
    }
  }

  /** What the peer's memory decides. */
  void requireFit(int number, Transfer t, List<Offer.Memory> spans) {
    if (spans.isEmpty() || t.flagOffset() > spans.getFirst().bytes() - FLAG_BYTES) {
      throw mismatch(number, t, "its flag is outside", spans);
    }
    if (spans.getFirst().address() % FLAG_BYTES != 0) {
      throw mismatch(number, t, "span 0 is not aligned to 8 bytes", spans);
    }
    if (isEmpty(t)) {
      return;
    }
    if (t.span() < 0 || t.span() >= spans.size()) {
      throw mismatch(number, t, "there is no span " + t.span(), spans);
    }
    long room = spans.get(t.span()).bytes() - t.offset() - t.rowBytes();
    if (room < 0 || (t.rows() > 1 && room / t.pitch() < t.rows() - 1)) {
      throw mismatch(number, t, "its bytes end outside", spans);
    }
  }

  static boolean isEmpty(Transfer t) {
    return t.rows() == 0 || t.rowBytes() == 0;
  }

  private MismatchException mismatch(
      int number, Transfer t, String what, List<Offer.Memory> spans) {
    return new MismatchException(
        "transfer %d of %s from rank %d to rank %d does not fit: %s; it is %s, the peer has %s"
            .formatted(number, operation, rank, t.peer(), what, t, spans),
        failure(t));
  }

  private Failure failure(Transfer t) {
    return Failure.UNKNOWN
        .withRank(rank)
        .withPeer(t.peer())
        .withOperation(operation)
        .withTask(t.toString());
  }
}
