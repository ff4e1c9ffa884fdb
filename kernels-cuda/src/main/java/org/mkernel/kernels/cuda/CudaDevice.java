package org.mkernel.kernels.cuda;

import java.lang.foreign.MemorySegment;
import java.util.Map;
import java.util.Optional;
import org.bytedeco.cuda.global.cudart;
import org.mkernel.api.Stopwatch;
import org.mkernel.api.UsageException;
import org.mkernel.api.schedule.RankSchedule;
import org.mkernel.api.schedule.Role;
import org.mkernel.api.spi.Device;
import org.mkernel.api.spi.Executable;
import org.mkernel.api.spi.ExecutionPlan;

/** A GPU as one rank uses it: the primary context, memory, and a stream of its own. */
final class CudaDevice implements Device {
  static final String KIND = "cuda";

  private static final long PAGE = 4096;

  private final CudaContext context;
  private final CudaStream stream;
  private final CudaTransfers transfers;
  private final int multiprocessors;

  CudaDevice(int ordinal) {
    this.context = CudaContext.retain(ordinal);
    boolean open = false;
    try {
      this.multiprocessors = context.attribute(cudart.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
      this.stream = new CudaStream(context);
      this.transfers = new CudaTransfers(context);
      open = true;
    } finally {
      if (!open) {
        context.close();
      }
    }
  }

  CudaContext context() {
    return context;
  }

  /** The stream of launches that name none. */
  CudaStream stream() {
    return stream;
  }

  int multiprocessors() {
    return multiprocessors;
  }

  @Override
  public String kind() {
    return KIND;
  }

  @Override
  public Memory allocate(long bytes, long alignment) {
    requireSize(bytes, alignment);
    return CudaMemory.allocate(context, transfers.stream(), bytes, alignment);
  }

  @Override
  public Pinned pinned(long bytes, long alignment) {
    requireSize(bytes, alignment);
    if (bytes == 0 || alignment > PAGE) {
      throw new UsageException(
          "%d bytes of pinned memory aligned to %d; at least 1 and at most %d are needed"
              .formatted(bytes, alignment, PAGE));
    }
    return PinnedMemory.allocate(context, bytes);
  }

  @Override
  public void read(long address, MemorySegment to) {
    transfers.read(address, to);
  }

  @Override
  public void write(MemorySegment from, long address) {
    transfers.write(from, address);
  }

  @Override
  public CopyQueue copyQueue() {
    return new CudaCopyQueue(context);
  }

  @Override
  public Optional<Stopwatch> stopwatch() {
    return Optional.of(new CudaStopwatch(context, stream));
  }

  @Override
  public byte[] export(long address, long bytes) {
    return MemoryHandle.export(context, address, bytes).encode();
  }

  @Override
  public Memory map(byte[] handle) {
    return MappedMemory.map(context, MemoryHandle.decode(handle));
  }

  private static void requireSize(long bytes, long alignment) {
    if (bytes < 0 || Long.bitCount(alignment) != 1 || alignment < 0) {
      throw new UsageException(
          "%d bytes aligned to %d are asked for; at least 0 and a power of two are needed"
              .formatted(bytes, alignment));
    }
  }

  @Override
  public boolean hostAccessible() {
    return false;
  }

  /** All multiprocessors for roles that compute, but for a few where there are others too. */
  @Override
  public int defaultLanes(RankSchedule plan, int role) {
    long computing = plan.roles().stream().filter(Role::compute).count();
    long others = plan.roles().size() - computing;
    if (!plan.roles().get(role).compute()) {
      return computing == 0 ? Math.toIntExact(Math.max(1, multiprocessors / others)) : 1;
    }
    return Math.toIntExact(Math.max(1, (multiprocessors - others) / computing));
  }

  @Override
  public Map<String, String> tuning() {
    return Map.of(
        "tile-rows", Integer.toString(TaskEncoder.TILE_ROWS),
        "tile-columns", Integer.toString(TaskEncoder.TILE_COLUMNS));
  }

  @Override
  public Executable prepare(ExecutionPlan plan) {
    return new CudaExecutable(this, plan);
  }

  @Override
  public void close() {
    try (context;
        stream) {
      transfers.close();
    }
  }
}
