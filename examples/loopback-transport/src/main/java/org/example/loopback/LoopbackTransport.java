package org.example.loopback;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.util.List;
import org.mkernel.api.Availability;
import org.mkernel.api.MismatchException;
import org.mkernel.api.spi.Exchange;
import org.mkernel.api.spi.Port;
import org.mkernel.api.spi.Span;
import org.mkernel.api.spi.TransportProvider;
import org.mkernel.api.spi.Transfer;
import org.mkernel.api.spi.Wire;

/** A wire between ranks of one process: a post copies at once. All that a transport must do is here. */
public final class LoopbackTransport implements TransportProvider {
  /** For {@link java.util.ServiceLoader}. */
  public LoopbackTransport() {}

  @Override
  public String name() {
    return "loopback";
  }

  @Override
  public Reach reach() {
    return Reach.NETWORK;
  }

  @Override
  public int cost() {
    return 2000;
  }

  @Override
  public Availability availability() {
    return new Availability.Available("ranks of one process");
  }

  @Override
  public Port open(Context context) {
    return new LoopbackWire(context.rank(), context.exchange());
  }

  private record LoopbackWire(int rank, Exchange exchange) implements Wire {
    private static final VarHandle FLAG = ValueLayout.JAVA_LONG.varHandle();

    @Override
    public Channel open(String operation, List<Span> spans, List<Transfer> transfers) {
      // What peers need to know: the process, and where this rank's spans lie.
      ByteBuffer own = ByteBuffer.allocate(Long.BYTES * (1 + 2 * spans.size()));
      own.putLong(ProcessHandle.current().pid());
      for (Span span : spans) {
        own.putLong(span.address()).putLong(span.bytes());
      }
      List<byte[]> all = exchange.allGather(own.array());
      return new LoopbackChannel(
          transfers.stream()
              .map(t -> Copy.of(operation, rank, t, ByteBuffer.wrap(all.get(t.peer()))))
              .toArray(Copy[]::new));
    }

    @Override
    public void close() {}
  }

  /** A transfer with both ends resolved and checked. */
  private record Copy(MemorySegment from, MemorySegment to, MemorySegment flag, Transfer transfer) {
    static Copy of(String operation, int rank, Transfer t, ByteBuffer peer) {
      if (peer.getLong(0) != ProcessHandle.current().pid()) {
        throw new MismatchException(
            "%s: rank %d is in another process than rank %d; loopback reaches one process only"
                .formatted(operation, t.peer(), rank));
      }
      MemorySegment from = MemorySegment.NULL;
      MemorySegment to = MemorySegment.NULL;
      if (t.rows() > 0) {
        from = memory(t.source(), (t.rows() - 1) * t.sourcePitch() + t.rowBytes());
        to = span(peer, t.span()).asSlice(t.offset(), (t.rows() - 1) * t.pitch() + t.rowBytes());
      }
      return new Copy(from, to, span(peer, 0).asSlice(t.flagOffset(), Long.BYTES), t);
    }

    private static MemorySegment span(ByteBuffer peer, int span) {
      int at = Long.BYTES * (1 + 2 * span);
      return memory(peer.getLong(at), peer.getLong(at + Long.BYTES));
    }

    private static MemorySegment memory(long address, long bytes) {
      return MemorySegment.ofAddress(address).reinterpret(bytes);
    }

    void run(long epoch) {
      for (long row = 0; row < transfer.rows(); row++) {
        MemorySegment.copy(
            from, row * transfer.sourcePitch(), to, row * transfer.pitch(), transfer.rowBytes());
      }
      // The flag is released after the bytes: whoever sees it sees them.
      LoopbackWire.FLAG.setRelease(flag, 0L, epoch);
    }
  }

  private static final class LoopbackChannel implements Wire.Channel {
    private final Copy[] copies;
    private final int[] done;
    private int pending;
    private boolean aborted;

    LoopbackChannel(Copy[] copies) {
      this.copies = copies;
      this.done = new int[Math.max(1, copies.length)];
    }

    @Override
    public boolean post(int transfer, long epoch) {
      if (aborted || pending == done.length) {
        return false;
      }
      copies[transfer].run(epoch);
      done[pending++] = transfer;
      return true;
    }

    @Override
    public int poll(Wire.Completions completions) {
      int count = pending;
      pending = 0;
      for (int i = 0; i < count; i++) {
        completions.completed(done[i]);
      }
      return count;
    }

    @Override
    public void abort() {
      aborted = true;
    }

    @Override
    public void close() {
      aborted = true;
    }
  }
}
