package org.mkernel.runtime;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
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
import org.mkernel.api.schedule.Topology;
import org.mkernel.api.spi.Exchange;
import org.mkernel.api.spi.Span;
import org.mkernel.api.spi.Transfer;
import org.mkernel.api.spi.TransportProvider;
import org.mkernel.api.spi.Wire;

/** A few ranks in one process with memory: flags in span 0, data in span 1, sources apart. */
final class EmulatedWorld implements AutoCloseable {
  static final long FLAG_BYTES = 4096;
  static final long DATA_BYTES = 8 << 20;

  private final int size;
  private final Arena arena = Arena.ofShared();
  private final CyclicBarrier barrier;
  private final byte[][] gathered;
  private final ExecutorService threads;
  private final List<Wire> wires = new ArrayList<>();
  final MemorySegment[] flags;
  final MemorySegment[] data;
  final MemorySegment[] source;
  final MemorySegment[] done;

  EmulatedWorld(int size, Map<String, String> options) {
    this.size = size;
    barrier = new CyclicBarrier(size);
    gathered = new byte[size][];
    threads = Executors.newFixedThreadPool(size);
    flags = segments(FLAG_BYTES);
    data = segments(DATA_BYTES);
    source = segments(DATA_BYTES);
    done = segments(FLAG_BYTES);
    for (int rank = 0; rank < size; rank++) {
      wires.add(
          (Wire)
              new EmulatedWireProvider()
                  .open(
                      new TransportProvider.Context(
                          rank,
                          Topology.of(size, 1),
                          exchange(rank),
                          options,
                          Executors.defaultThreadFactory())));
    }
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
        barrier.await(10, TimeUnit.SECONDS);
        List<byte[]> all = List.of(gathered.clone());
        barrier.await(10, TimeUnit.SECONDS);
        return all;
      } catch (Exception e) {
        throw new IllegalStateException(e);
      }
    };
  }

  /** Opens a channel on every rank; throws what the first rank that fails throws. */
  List<Wire.Channel> open(IntFunction<List<Transfer>> transfers) {
    List<Callable<Wire.Channel>> calls = new ArrayList<>();
    for (int rank = 0; rank < size; rank++) {
      int r = rank;
      List<Span> spans =
          List.of(
              new Span(flags[r].address(), FLAG_BYTES),
              new Span(data[r].address(), data[r].byteSize()));
      calls.add(() -> wires.get(r).open("test", spans, transfers.apply(r)));
    }
    List<Wire.Channel> channels = new ArrayList<>();
    try {
      for (Future<Wire.Channel> future : threads.invokeAll(calls)) {
        channels.add(future.get());
      }
    } catch (ExecutionException e) {
      if (e.getCause() instanceof RuntimeException cause) {
        throw cause;
      }
      throw new IllegalStateException(e);
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
    return channels;
  }

  CommandFifo fifo(int capacity) {
    return new CommandFifo(arena.allocate(CommandFifo.bytes(capacity), 128), capacity);
  }

  static long signal(MemorySegment signals, int number) {
    return RawMemory.acquire(signals.address() + 8L * number);
  }

  static byte at(MemorySegment memory, long offset) {
    return memory.get(ValueLayout.JAVA_BYTE, offset);
  }

  @Override
  public void close() {
    threads.shutdownNow();
    wires.forEach(Wire::close);
    arena.close();
  }
}
