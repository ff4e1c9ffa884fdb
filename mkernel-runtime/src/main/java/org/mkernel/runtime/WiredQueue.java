package org.mkernel.runtime;

import java.util.List;
import org.jspecify.annotations.Nullable;
import org.mkernel.api.DeviceException;
import org.mkernel.api.Failure;
import org.mkernel.api.spi.ExecutionPlan;

/** What one operation of one rank sends by wire: its FIFO and how the proxy serves it. */
final class WiredQueue implements ExecutionPlan.Commands {
  /** Of an operation that sends nothing by wire. */
  static final WiredQueue NONE = new WiredQueue(null, null, null, 0, List.of());

  private final @Nullable ProxyThread proxy;
  private final @Nullable ProxyQueue queue;
  private final @Nullable CommandFifo fifo;
  private final long address;
  private final List<Integer> peers;

  private WiredQueue(
      @Nullable ProxyThread proxy,
      @Nullable ProxyQueue queue,
      @Nullable CommandFifo fifo,
      long address,
      List<Integer> peers) {
    this.proxy = proxy;
    this.queue = queue;
    this.fifo = fifo;
    this.address = address;
    this.peers = peers;
  }

  static WiredQueue of(
      ProxyThread proxy, ProxyQueue queue, CommandFifo fifo, long address, List<Integer> peers) {
    return new WiredQueue(proxy, queue, fifo, address, peers.stream().distinct().sorted().toList());
  }

  void start() {
    if (proxy != null && queue != null) {
      proxy.register(queue);
    }
  }

  void stop() {
    if (proxy != null && queue != null && !proxy.unregister(queue)) {
      throw new DeviceException(
          "the proxy does not let go of a queue; its memory is kept",
          Failure.remedy("look for a transport whose post or poll blocks"));
    }
  }

  void enter(long epoch) {
    if (queue != null) {
      queue.enter(epoch);
    }
  }

  boolean isComplete(long epoch) {
    return queue == null || queue.isComplete(epoch);
  }

  /** The ranks that it sends to: those that have not all yet, where that is known. */
  List<Integer> pendingPeers() {
    List<Integer> pending = queue == null ? List.of() : queue.pendingPeers();
    return pending.isEmpty() ? peers : pending;
  }

  @Override
  public boolean offer(int transfer, long epoch) {
    if (fifo == null) {
      throw new IllegalStateException("a command in an operation that sends nothing by wire");
    }
    return fifo.offer(Command.encode(transfer, 0, epoch));
  }

  @Override
  public long address() {
    return address;
  }

  @Override
  public int capacity() {
    return fifo == null ? 0 : fifo.capacity();
  }
}
