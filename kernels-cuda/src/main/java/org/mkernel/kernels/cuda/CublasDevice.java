package org.mkernel.kernels.cuda;

import java.lang.foreign.MemorySegment;
import java.util.Map;
import java.util.Optional;
import org.mkernel.api.Stopwatch;
import org.mkernel.api.schedule.RankSchedule;
import org.mkernel.api.spi.Device;
import org.mkernel.api.spi.Executable;
import org.mkernel.api.spi.ExecutionPlan;

/** A GPU on which cuBLAS computes. Its memory is that of the device {@code cuda}. */
final class CublasDevice implements Device {
  static final String KIND = "cublas";

  /** One task for a whole product: cuBLAS cuts it by itself. */
  private static final String WHOLE = Integer.toString(Integer.MAX_VALUE);

  private final CudaDevice device;
  private final Cublas blas;

  CublasDevice(CudaDevice device) {
    this.device = device;
    boolean open = false;
    try {
      this.blas = new Cublas(device.context());
      open = true;
    } finally {
      if (!open) {
        device.close();
      }
    }
  }

  @Override
  public String kind() {
    return KIND;
  }

  @Override
  public Memory allocate(long bytes, long alignment) {
    return device.allocate(bytes, alignment);
  }

  @Override
  public Pinned pinned(long bytes, long alignment) {
    return device.pinned(bytes, alignment);
  }

  @Override
  public boolean hostAccessible() {
    return device.hostAccessible();
  }

  @Override
  public void read(long address, MemorySegment to) {
    device.read(address, to);
  }

  @Override
  public void write(MemorySegment from, long address) {
    device.write(from, address);
  }

  @Override
  public CopyQueue copyQueue() {
    return device.copyQueue();
  }

  @Override
  public Optional<Stopwatch> stopwatch() {
    return device.stopwatch();
  }

  @Override
  public byte[] export(long address, long bytes) {
    return device.export(address, bytes);
  }

  @Override
  public Memory map(byte[] handle) {
    return device.map(handle);
  }

  @Override
  public int defaultLanes(RankSchedule plan, int role) {
    return 1;
  }

  @Override
  public Map<String, String> tuning() {
    return Map.of("chunk-rows", WHOLE, "tile-rows", WHOLE, "tile-columns", WHOLE);
  }

  @Override
  public Executable prepare(ExecutionPlan plan) {
    return new CublasExecutable(device, blas, plan);
  }

  @Override
  public void close() {
    try (device;
        blas) {
      // What runs was awaited.
    }
  }
}
