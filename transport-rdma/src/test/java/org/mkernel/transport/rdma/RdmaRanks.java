package org.mkernel.transport.rdma;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.IntFunction;
import org.mkernel.api.Availability;
import org.mkernel.api.schedule.Topology;
import org.mkernel.api.spi.Exchange;
import org.mkernel.api.spi.Span;
import org.mkernel.api.spi.Transfer;
import org.mkernel.api.spi.TransportProvider;
import org.mkernel.api.spi.Wire;

/** A few ranks in one process with memory: flags in span 0, data in span 1, sources apart. */
final class RdmaRanks implements AutoCloseable {
  static final long FLAG_BYTES = 4096;
  static final long DATA_BYTES = 1 << 20;
  private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();

  private final int size;
  private final Arena arena = Arena.ofShared();
  private final CyclicBarrier barrier;
  private final byte[][] gathered;
  private final ExecutorService threads;
  private final List<Wire> wires = new ArrayList<>();
  private final List<Wire.Channel> channels = new ArrayList<>();
  final MemorySegment[] flags;
  final MemorySegment[] data;
  final MemorySegment[] source;

  /** Opens the wire of each rank; throws what the first rank that fails throws. */
  RdmaRanks(int size, IntFunction<Map<String, String>> options) {
    this.size = size;
    barrier = new CyclicBarrier(size);
    gathered = new byte[size][];
    threads = Executors.newFixedThreadPool(size);
    flags = segments(FLAG_BYTES);
    data = segments(DATA_BYTES);
    source = segments(DATA_BYTES);
    try {
      wires.addAll(all(rank -> (Wire) provider().open(context(rank, options.apply(rank)))));
    } catch (RuntimeException e) {
      close();
      throw e;
    }
  }

  private static RdmaTransport provider() {
    return new RdmaTransport(
        new Sysfs(Path.of("/sys"), Path.of("/dev")), Path.of("/proc"), VerbsLibrary::availability);
  }

  static Availability availability() {
    return provider().availability();
  }

  private TransportProvider.Context context(int rank, Map<String, String> options) {
    return new TransportProvider.Context(
        rank, Topology.of(size, 1), exchange(rank), options, Executors.defaultThreadFactory());
  }

  private MemorySegment[] segments(long bytes) {
    MemorySegment[] all = new MemorySegment[size];
    Arrays.setAll(all, _ -> arena.allocate(bytes, 64));
    return all;
  }

  private Exchange exchange(int rank) {
    return contribution -> {
      try {
        gathered[rank] = contribution;
        barrier.await(60, TimeUnit.SECONDS);
        List<byte[]> all = List.of(gathered.clone());
        barrier.await(60, TimeUnit.SECONDS);
        return all;
      } catch (Exception e) {
        throw new IllegalStateException(e);
      }
    };
  }

  private <T> List<T> all(IntFunction<T> ofRank) {
    List<Callable<T>> calls = new ArrayList<>();
    for (int rank = 0; rank < size; rank++) {
      int r = rank;
      calls.add(() -> ofRank.apply(r));
    }
    List<T> results = new ArrayList<>();
    RuntimeException first = null;
    try {
      for (Future<T> future : threads.invokeAll(calls)) {
        try {
          results.add(future.get());
        } catch (ExecutionException e) {
          RuntimeException cause =
              e.getCause() instanceof RuntimeException r ? r : new IllegalStateException(e);
          if (first == null) {
            first = cause;
          } else {
            first.addSuppressed(cause);
          }
        }
      }
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
    if (first != null) {
      throw first;
    }
    return results;
  }

  /** Opens a channel on every rank; throws what the first rank that fails throws. */
  List<RdmaChannel> open(IntFunction<List<Transfer>> transfers) {
    List<RdmaChannel> opened =
        all(rank ->
            (RdmaChannel)
                wires
                    .get(rank)
                    .open(
                        "test",
                        List.of(
                            new Span(flags[rank].address(), FLAG_BYTES),
                            new Span(data[rank].address(), DATA_BYTES)),
                        transfers.apply(rank)));
    channels.addAll(opened);
    return opened;
  }

  static long flag(MemorySegment flags, int number) {
    return (long) LONG.getAcquire(flags, 8L * number);
  }

  @Override
  public void close() {
    channels.forEach(Wire.Channel::close);
    wires.forEach(Wire::close);
    threads.shutdownNow();
    arena.close();
  }
}
