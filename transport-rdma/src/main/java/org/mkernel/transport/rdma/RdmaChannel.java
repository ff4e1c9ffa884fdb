package org.mkernel.transport.rdma;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.mkernel.api.DeviceException;
import org.mkernel.api.Failure;
import org.mkernel.api.spi.Wire;

/** The transfers of one operation on one rank, over a queue pair for each peer. */
final class RdmaChannel implements Wire.Channel {
  private static final long EVENTS_NANOS = TimeUnit.MILLISECONDS.toNanos(5);
  private static final long WORK_ID = Structs.offset(Structs.COMPLETION, "work_id");
  private static final long STATUS = Structs.offset(Structs.COMPLETION, "status");
  private static final long VENDOR_ERROR = Structs.offset(Structs.COMPLETION, "vendor_error");

  private final String operation;
  private final int rank;
  private final Adapter adapter;
  private final ChannelResources resources;
  private final QueuePair[] pairs;
  private final PreparedTransfers transfers;
  private final MemorySegment completions;
  private long eventsAt;
  private int eventsSeen;
  private boolean stopped;
  private boolean closed;

  RdmaChannel(
      String operation,
      int rank,
      Adapter adapter,
      ChannelResources resources,
      List<QueuePair> pairs,
      PreparedTransfers transfers) {
    this.operation = operation;
    this.rank = rank;
    this.adapter = adapter;
    this.resources = resources;
    this.pairs = pairs.toArray(QueuePair[]::new);
    this.transfers = transfers;
    this.completions = resources.arena().allocate(Structs.COMPLETION, Verbs.BATCH);
    this.eventsAt = System.nanoTime();
    // What happened before is no concern of this channel.
    this.eventsSeen = adapter.fatalEvents().size();
  }

  @Override
  public boolean post(int transfer, long epoch) {
    return !stopped && pairs[transfers.pair(transfer)].post(transfers, transfer, epoch);
  }

  @Override
  public int poll(Wire.Completions hears) {
    if (stopped) {
      return 0;
    }
    int work = 0;
    boolean waits = false;
    for (QueuePair pair : pairs) {
      work += pair.postRest(transfers);
      waits |= pair.inFlight() > 0;
    }
    if (waits) {
      work += read(hears);
    }
    long now = System.nanoTime();
    if (now - eventsAt >= EVENTS_NANOS) {
      eventsAt = now;
      adapter.readEvents();
      requireNoEvent();
    }
    return work;
  }

  private int read(Wire.Completions hears) {
    long found = Verbs.poll(resources.completionQueue(), completions.address(), Verbs.BATCH);
    if (found < 0) {
      throw NativeCall.failed(
          "%s: reading completions of rank %d".formatted(operation, rank),
          (int) -found,
          Verbs.error((int) -found));
    }
    for (int i = 0; i < found; i++) {
      long at = i * Structs.COMPLETION.byteSize();
      long workId = completions.get(JAVA_LONG, at + WORK_ID);
      int status = completions.get(JAVA_INT, at + STATUS);
      if (status == 0) {
        int done = pairs[PreparedTransfers.pairOf(workId)].complete();
        if (done >= 0) {
          hears.completed(done);
        }
      } else {
        fail(hears, workId, status, completions.get(JAVA_INT, at + VENDOR_ERROR));
      }
    }
    return (int) found;
  }

  private void fail(Wire.Completions hears, long workId, int code, int vendorError) {
    CompletionStatus status = CompletionStatus.of(code);
    adapter.readEvents();
    String event = adapter.notedEvent();
    hears.failed(
        PreparedTransfers.transferOf(workId),
        "%s, %s (vendor error 0x%x)%s"
            .formatted(
                status,
                status.meaning(),
                vendorError,
                event.isEmpty() ? "" : "; before that, adapter " + event),
        code,
        status.remedy());
  }

  private void requireNoEvent() {
    List<Adapter.Fatal> fatal = adapter.fatalEvents();
    for (; eventsSeen < fatal.size(); eventsSeen++) {
      Adapter.Fatal event = fatal.get(eventsSeen);
      if (event.queuePair() < 0) {
        throw new DeviceException(
            "%s on rank %d: adapter %s".formatted(operation, rank, event.text()), failure(event));
      }
      for (QueuePair pair : pairs) {
        if (pair.number() == event.queuePair()) {
          throw new DeviceException(
              "%s on rank %d: adapter %s, on the queue pair to rank %d"
                  .formatted(operation, rank, event.text(), pair.peer()),
              failure(event).withPeer(pair.peer()));
        }
      }
    }
  }

  private Failure failure(Adapter.Fatal event) {
    return Failure.remedy("look for adapter errors in the kernel's log, here and on the peer")
        .withRank(rank)
        .withOperation(operation)
        .withNativeCode(event.type());
  }

  /** Its connections, for tests of faults. */
  List<QueuePair> pairs() {
    return List.of(pairs);
  }

  /** Takes peers the right to write here, for tests of faults. */
  void endRegistrations() {
    resources.endRegistrations();
  }

  @Override
  public void abort() {
    if (!stopped) {
      stopped = true;
      for (QueuePair pair : pairs) {
        pair.stop();
      }
    }
  }

  @Override
  public void close() {
    if (!closed) {
      closed = true;
      stopped = true;
      resources.close();
    }
  }
}
