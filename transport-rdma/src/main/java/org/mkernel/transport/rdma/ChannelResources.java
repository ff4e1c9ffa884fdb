package org.mkernel.transport.rdma;

import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import org.mkernel.api.spi.Span;

/** What a channel holds of the adapter, given back in the reverse order. */
final class ChannelResources implements AutoCloseable {
  private final List<Runnable> closes = new ArrayList<>();
  private final Adapter adapter;
  private final Arena arena = Arena.ofShared();
  private final List<QueuePair> pairs = new ArrayList<>();
  private final List<MemoryRegions> registered = new ArrayList<>();
  private long completionQueue;

  ChannelResources(Adapter adapter) {
    this.adapter = adapter;
    closes.add(arena::close);
  }

  Arena arena() {
    return arena;
  }

  /** Registers the memory of an operation. */
  MemoryRegions register(List<Span> spans) {
    MemoryRegions regions = new MemoryRegions(adapter.domain(), spans);
    closes.add(regions::close);
    registered.add(regions);
    return regions;
  }

  /** Ends all registrations, though queue pairs live on. */
  void endRegistrations() {
    registered.forEach(MemoryRegions::close);
  }

  /** Makes a queue pair for each of some peers, and a queue that holds all their completions. */
  List<QueuePair> pairs(List<Integer> peers) {
    int depth = adapter.depth(peers.size());
    int entries = Math.max(1, depth * peers.size());
    long queue =
        NativeCall.check(
            Verbs.createCompletionQueue(adapter.context(), entries),
            "a queue of %d completions".formatted(entries));
    completionQueue = queue;
    closes.add(
        () -> NativeCall.check(Verbs.destroyCompletionQueue(queue), "ending a completion queue"));
    for (int peer : peers) {
      QueuePair pair = new QueuePair(adapter.domain(), queue, peer, depth);
      closes.add(pair::close);
      pairs.add(pair);
    }
    return List.copyOf(pairs);
  }

  long completionQueue() {
    return completionQueue;
  }

  @Override
  public void close() {
    RuntimeException first = null;
    while (!closes.isEmpty()) {
      try {
        closes.removeLast().run();
      } catch (RuntimeException e) {
        if (first == null) {
          first = e;
        } else {
          first.addSuppressed(e);
        }
      }
    }
    if (first != null) {
      throw first;
    }
  }
}
