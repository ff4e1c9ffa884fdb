package org.mkernel.kernels.host;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Map;
import java.util.OptionalInt;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicBoolean;
import org.mkernel.api.DeviceException;
import org.mkernel.api.Failure;
import org.mkernel.api.UsageException;
import org.mkernel.api.schedule.RankSchedule;
import org.mkernel.api.spi.Device;
import org.mkernel.api.spi.Executable;
import org.mkernel.api.spi.ExecutionPlan;

/** Memory of the host and lanes that are threads. */
final class HostDevice implements Device {
  static final String KIND = "host";

  private static final String REMEDY =
      "use smaller tensors or fewer ranks, or raise the memory limit of this process";

  /** Smaller sizes are not compared with what is available: asking costs a file or two. */
  private static final long WORTH_ASKING = 64L << 20;

  /** The name alone is that of the interface here. */
  private static final MemorySegment ALL = org.mkernel.kernels.host.Memory.ALL;

  private static final long PAGE_BYTES = 4096;

  private final ThreadFactory threads;

  HostDevice(ThreadFactory threads) {
    this.threads = threads;
  }

  @Override
  public String kind() {
    return KIND;
  }

  @Override
  public Memory allocate(long bytes, long alignment) {
    return reserve(bytes, alignment);
  }

  @Override
  public Memory allocateShared(long bytes, long alignment) {
    if (bytes <= 0 || alignment > PAGE_BYTES) {
      return allocate(bytes, alignment);
    }
    requireAvailable(bytes);
    return new SharedHostMemory(SharedSegment.allocate(bytes));
  }

  @Override
  public Pinned pinned(long bytes, long alignment) {
    return reserve(bytes, alignment);
  }

  @SuppressWarnings("MustBeClosedChecker") // The memory owns the arena and closes it.
  private static HostMemory reserve(long bytes, long alignment) {
    if (bytes < 0 || Long.bitCount(alignment) != 1 || alignment < 0) {
      throw new UsageException(
          "%d bytes aligned to %d are asked for; at least 0 and a power of two are needed"
              .formatted(bytes, alignment));
    }
    requireAvailable(bytes);
    Arena arena = Arena.ofShared();
    try {
      return new HostMemory(
          arena, bytes == 0 ? 0 : arena.allocate(bytes, alignment).address(), bytes);
    } catch (OutOfMemoryError | IllegalArgumentException e) {
      arena.close();
      throw new DeviceException(
          "%d bytes of host memory can't be allocated: %s".formatted(bytes, e.getMessage()),
          Failure.remedy(REMEDY),
          e);
    }
  }

  private static void requireAvailable(long bytes) {
    long available = bytes < WORTH_ASKING ? Long.MAX_VALUE : AvailableMemory.bytes();
    if (bytes > available) {
      throw new DeviceException(
          "%d bytes of host memory are needed; %d are available".formatted(bytes, available),
          Failure.remedy(REMEDY));
    }
  }

  @Override
  public boolean hostAccessible() {
    return true;
  }

  @Override
  public void read(long address, MemorySegment to) {
    MemorySegment.copy(ALL, address, to, 0, to.byteSize());
  }

  @Override
  public void write(MemorySegment from, long address) {
    MemorySegment.copy(from, 0, ALL, address, from.byteSize());
  }

  @Override
  public CopyQueue copyQueue() {
    return new HostCopyQueue();
  }

  @Override
  public byte[] export(long address, long bytes) {
    return MemoryHandle.of(address, bytes).encode();
  }

  @SuppressWarnings("MustBeClosedChecker") // The memory owns the arena and closes it.
  @Override
  public Memory map(byte[] handle) {
    MemoryHandle memory = MemoryHandle.decode(OptionalInt.empty(), handle);
    Arena arena = Arena.ofShared();
    boolean mapped = false;
    try {
      MappedMemory here =
          new MappedMemory(memory.map(OptionalInt.empty(), arena), memory.bytes(), arena);
      mapped = true;
      return here;
    } finally {
      if (!mapped) {
        arena.close();
      }
    }
  }

  @Override
  public int defaultLanes(RankSchedule plan, int role) {
    // Ranks of a node share its processors, and each brings lanes of its own.
    return 1;
  }

  /** OpenBLAS packs B for each tile: tall ones share that, and still leave some to overlap. */
  @Override
  public Map<String, String> tuning() {
    return Map.of("tile-rows", "512");
  }

  @Override
  public Executable prepare(ExecutionPlan plan) {
    return new HostExecutable(plan, threads);
  }

  @Override
  public void close() {}

  /** Memory that another rank owns. */
  private record MappedMemory(long address, long bytes, Arena arena) implements Memory {
    @Override
    public void close() {
      if (arena.scope().isAlive()) {
        arena.close();
      }
    }
  }

  /** Memory that other processes may map. */
  private static final class SharedHostMemory implements Memory {
    private final SharedSegment segment;
    private final AtomicBoolean closed = new AtomicBoolean();

    SharedHostMemory(SharedSegment segment) {
      this.segment = segment;
    }

    @Override
    public long address() {
      return segment.address();
    }

    @Override
    public long bytes() {
      return segment.bytes();
    }

    @Override
    public void close() {
      if (closed.compareAndSet(false, true)) {
        segment.close();
      }
    }
  }

  private static final class HostMemory implements Pinned {
    private final Arena arena;
    private final long address;
    private final long bytes;
    private final AtomicBoolean closed = new AtomicBoolean();

    HostMemory(Arena arena, long address, long bytes) {
      this.arena = arena;
      this.address = address;
      this.bytes = bytes;
    }

    @Override
    public long address() {
      return address;
    }

    @Override
    public long hostAddress() {
      return address;
    }

    @Override
    public long bytes() {
      return bytes;
    }

    @Override
    public void close() {
      if (closed.compareAndSet(false, true)) {
        arena.close();
      }
    }
  }
}
