package org.mkernel.kernels.host;

import java.lang.foreign.Arena;
import java.util.HashMap;
import java.util.Map;
import java.util.OptionalInt;
import org.mkernel.api.Availability;
import org.mkernel.api.spi.MappedPort;
import org.mkernel.api.spi.Port;
import org.mkernel.api.spi.TransportProvider;

/** Ranks of one machine reach each other by load and store, in one process or in several. */
public final class SharedMemoryTransport implements TransportProvider {
  /** For {@link java.util.ServiceLoader}. */
  public SharedMemoryTransport() {}

  @Override
  public String name() {
    return "shared-memory";
  }

  @Override
  public Reach reach() {
    return Reach.NODE;
  }

  @Override
  public int cost() {
    return 100;
  }

  @Override
  public Availability availability() {
    return new Availability.Available("ranks of one machine");
  }

  @Override
  public Port open(Context context) {
    byte[] own = MemoryHandle.of(0, 0).encode();
    boolean alone =
        context.exchange().allGather(own).stream()
            .map(handle -> MemoryHandle.decode(OptionalInt.empty(), handle))
            .allMatch(MemoryHandle::isOwn);
    return new SharedMemoryPort(alone);
  }

  private static final class SharedMemoryPort implements MappedPort {
    private final boolean alone;
    private final Map<Long, Arena> mappings = new HashMap<>();

    SharedMemoryPort(boolean alone) {
      this.alone = alone;
    }

    @Override
    public byte[] export(long address, long bytes) {
      MemoryHandle handle = MemoryHandle.of(address, bytes);
      // Memory that a caller brought can't be mapped by others; whether anybody needs to is found
      // out when all addresses are known.
      return alone || handle.isShared() ? handle.encode() : new byte[0];
    }

    @SuppressWarnings("MustBeClosedChecker") // The port owns the arena and closes it.
    @Override
    public long map(int peer, byte[] handle) {
      MemoryHandle memory = MemoryHandle.decode(OptionalInt.of(peer), handle);
      if (memory.isOwn()) {
        return memory.address();
      }
      Arena arena = Arena.ofShared();
      boolean mapped = false;
      try {
        long address = memory.map(OptionalInt.of(peer), arena);
        synchronized (mappings) {
          mappings.put(address, arena);
        }
        mapped = true;
        return address;
      } finally {
        if (!mapped) {
          arena.close();
        }
      }
    }

    @Override
    public void unmap(long address) {
      Arena arena;
      synchronized (mappings) {
        arena = mappings.remove(address);
      }
      if (arena != null) {
        arena.close();
      }
    }

    @Override
    public void close() {
      synchronized (mappings) {
        mappings.values().forEach(Arena::close);
        mappings.clear();
      }
    }
  }
}
