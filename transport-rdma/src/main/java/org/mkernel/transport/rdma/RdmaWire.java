package org.mkernel.transport.rdma;

import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.mkernel.api.Availability;
import org.mkernel.api.Failure;
import org.mkernel.api.UnavailableException;
import org.mkernel.api.spi.Span;
import org.mkernel.api.spi.Transfer;
import org.mkernel.api.spi.TransportProvider;
import org.mkernel.api.spi.Wire;

/** The wire of one rank: an adapter, and a way to talk about connections. */
final class RdmaWire implements Wire {
  private final TransportProvider.Context context;
  private final Adapter adapter;

  private RdmaWire(TransportProvider.Context context, Adapter adapter) {
    this.context = context;
    this.adapter = adapter;
  }

  /** Opens the adapter of a rank. All ranks call it, and fail when one of them fails. */
  static RdmaWire open(TransportProvider.Context context, Sysfs sysfs, Path proc) {
    Opening opening = new Opening(context, sysfs, proc);
    try {
      new Talk(context.rank(), "opening the transport", context.exchange())
          .round(() -> {
            opening.run();
            return new byte[0];
          });
      return new RdmaWire(context, opening.adapter());
    } catch (RuntimeException e) {
      opening.undo();
      throw e;
    }
  }

  private static final class Opening {
    private final TransportProvider.Context context;
    private final Sysfs sysfs;
    private final Path proc;
    private @Nullable Adapter adapter;

    Opening(TransportProvider.Context context, Sysfs sysfs, Path proc) {
      this.context = context;
      this.sysfs = sysfs;
      this.proc = proc;
    }

    void run() {
      RdmaOptions options = RdmaOptions.parse(context.options());
      MemoryLimit limit = MemoryLimit.of(proc);
      if (limit.isTooLow()) {
        throw new UnavailableException(
            "%s; at least %d KiB are needed".formatted(limit, MemoryLimit.LEAST >> 10),
            Failure.remedy(MemoryLimit.REMEDY).withRank(context.rank()));
      }
      // Asking is what loads the library, should nobody have asked before.
      if (VerbsLibrary.availability() instanceof Availability.Unavailable missing) {
        throw new UnavailableException(
            missing.reason(), Failure.remedy(missing.remedy()).withRank(context.rank()));
      }
      adapter = Adapter.open(sysfs, options, context.rank());
    }

    Adapter adapter() {
      if (adapter == null) {
        throw new IllegalStateException("the adapter is not open");
      }
      return adapter;
    }

    void undo() {
      if (adapter != null) {
        adapter.close();
      }
    }
  }

  @Override
  public Channel open(String operation, List<Span> spans, List<Transfer> transfers) {
    Talk talk = new Talk(context.rank(), operation, context.exchange());
    return new Connecting(adapter, talk, context.topology().size(), transfers).run(spans);
  }

  @Override
  public void close() {
    adapter.close();
  }
}
