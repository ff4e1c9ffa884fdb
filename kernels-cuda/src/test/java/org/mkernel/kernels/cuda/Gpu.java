package org.mkernel.kernels.cuda;

import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Assumptions;
import org.mkernel.api.Availability;
import org.mkernel.api.DType;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.spi.Device;

/**
 * A GPU with memory that is freed together; tests that need one are skipped where there is none.
 */
final class Gpu implements AutoCloseable {
  final CudaDevice device;
  private final List<Device.Memory> memory = new ArrayList<>();

  private Gpu(CudaDevice device) {
    this.device = device;
  }

  static Gpu open() {
    CudaDeviceProvider provider = new CudaDeviceProvider();
    Availability availability = provider.availability();
    Assumptions.assumeTrue(
        availability instanceof Availability.Available, () -> "no GPU: " + availability);
    return new Gpu((CudaDevice) provider.open(0, Thread::new));
  }

  long allocate(long bytes) {
    Device.Memory allocated = device.allocate(Math.max(bytes, 16), 256);
    memory.add(allocated);
    return allocated.address();
  }

  TestPlan plan(Schedule schedule, int lanes, long waitMillis) {
    return new TestPlan(schedule, this::allocate, lanes, waitMillis);
  }

  /** Writes elements, rows of {@code columns} being {@code pitch} bytes apart. */
  void write(long address, DType dtype, float[] values) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment bytes = arena.allocate(2L * values.length, 16);
      for (int i = 0; i < values.length; i++) {
        bytes.setAtIndex(JAVA_SHORT, i, (short) dtype.encode(values[i]));
      }
      device.write(bytes, address);
    }
  }

  float[] read(long address, DType dtype, int count) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment bytes = arena.allocate(2L * count, 16);
      device.read(address, bytes);
      float[] values = new float[count];
      for (int i = 0; i < count; i++) {
        values[i] = dtype.decode(bytes.getAtIndex(JAVA_SHORT, i));
      }
      return values;
    }
  }

  /** Integers in −2 … 2: products of them have exact sums. */
  static float[] integers(long seed, int count) {
    Random random = new Random(seed);
    float[] values = new float[count];
    for (int i = 0; i < count; i++) {
      values[i] = random.nextInt(5) - 2;
    }
    return values;
  }

  /** The product of m × k and k × n, rounded once. */
  static float[] product(DType dtype, float[] a, float[] b, int m, int n, int k) {
    float[] c = new float[m * n];
    float[] sums = new float[n];
    for (int i = 0; i < m; i++) {
      java.util.Arrays.fill(sums, 0);
      for (int l = 0; l < k; l++) {
        float left = a[i * k + l];
        for (int j = 0; j < n; j++) {
          sums[j] += left * b[l * n + j];
        }
      }
      for (int j = 0; j < n; j++) {
        c[i * n + j] = dtype.decode(dtype.encode(sums[j]));
      }
    }
    return c;
  }

  @Override
  public void close() {
    memory.forEach(Device.Memory::close);
    device.close();
  }
}
