package org.mkernel.runtime;

import java.util.ArrayList;
import java.util.List;
import org.mkernel.api.Failure;
import org.mkernel.api.MismatchException;
import org.mkernel.api.UsageException;
import org.mkernel.api.spi.Span;
import org.mkernel.api.spi.Transfer;
import org.mkernel.api.spi.TransportProvider;
import org.mkernel.api.spi.Wire;

/** The emulated wire of one rank. All its channels share one adapter, and so its bandwidth. */
final class EmulatedWire implements Wire {
  private static final int FLAG_BYTES = Long.BYTES;

  private final TransportProvider.Context context;
  private final EmulatedOptions options;
  private final EmulatedAdapter adapter;
  private int opened;

  EmulatedWire(TransportProvider.Context context, EmulatedOptions options) {
    this.context = context;
    this.options = options;
    this.adapter = new EmulatedAdapter(context.rank(), context.topology().size(), options);
  }

  @Override
  public Channel open(String operation, List<Span> spans, List<Transfer> transfers) {
    List<byte[]> handles = context.exchange().allGather(EmulatedHandle.encode(spans));
    List<List<Span>> all = new ArrayList<>();
    for (int peer = 0; peer < handles.size(); peer++) {
      all.add(EmulatedHandle.decode(peer, handles.get(peer)));
    }
    for (int number = 0; number < transfers.size(); number++) {
      check(operation, number, transfers.get(number), all);
    }
    long seed = options.seed() == 0 ? 0 : options.seed() * 31 + context.rank() * 7919L + ++opened;
    return new EmulatedChannel(
        adapter, new EmulatedTransfers(transfers, all, seed != 0), options.depth(), seed);
  }

  private void check(String operation, int number, Transfer t, List<List<Span>> all) {
    int world = context.topology().size();
    if (t.peer() < 0 || t.peer() >= world || t.peer() == context.rank()) {
      throw usage(operation, number, t, "peers of rank %d of %d".formatted(context.rank(), world));
    }
    boolean negative = t.rows() < 0 || t.rowBytes() < 0 || t.offset() < 0 || t.flagOffset() < 0;
    boolean overlaps = t.rows() > 1 && (t.pitch() < t.rowBytes() || t.sourcePitch() < t.rowBytes());
    boolean empty = t.rows() == 0 || t.rowBytes() == 0;
    if (negative || overlaps || t.flagOffset() % FLAG_BYTES != 0 || (!empty && t.source() == 0)) {
      throw usage(
          operation,
          number,
          t,
          "sizes of at least 0, pitches of at least a row, a source, a flag at a multiple of 8");
    }
    List<Span> spans = all.get(t.peer());
    if (spans.isEmpty() || t.flagOffset() > spans.getFirst().bytes() - FLAG_BYTES) {
      throw mismatch(operation, number, t, "its flag is outside", spans);
    }
    if (spans.getFirst().address() % FLAG_BYTES != 0) {
      throw mismatch(operation, number, t, "span 0 is not aligned to 8 bytes", spans);
    }
    if (empty) {
      return;
    }
    if (t.span() < 0 || t.span() >= spans.size()) {
      throw mismatch(operation, number, t, "there is no span " + t.span(), spans);
    }
    Span span = spans.get(t.span());
    long room = span.bytes() - t.offset() - t.rowBytes();
    if (room < 0 || (t.rows() > 1 && room / t.pitch() < t.rows() - 1)) {
      throw mismatch(operation, number, t, "its bytes end outside", spans);
    }
  }

  private UsageException usage(String operation, int number, Transfer t, String needed) {
    return new UsageException(
        "transfer %d of %s on rank %d is %s; needed are %s"
            .formatted(number, operation, context.rank(), t, needed),
        failure(operation, t));
  }

  private MismatchException mismatch(
      String operation, int number, Transfer t, String what, List<Span> spans) {
    return new MismatchException(
        "transfer %d of %s from rank %d to rank %d does not fit: %s; it is %s, the peer has %s"
            .formatted(number, operation, context.rank(), t.peer(), what, t, spans),
        failure(operation, t));
  }

  private Failure failure(String operation, Transfer t) {
    return Failure.UNKNOWN
        .withRank(context.rank())
        .withPeer(t.peer())
        .withOperation(operation)
        .withTask(t.toString());
  }

  @Override
  public void close() {
    // Nothing is held beyond the channels.
  }
}
