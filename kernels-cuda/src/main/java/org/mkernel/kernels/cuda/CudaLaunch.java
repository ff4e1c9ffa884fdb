package org.mkernel.kernels.cuda;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import org.bytedeco.cuda.cudart.CUfunc_st;
import org.bytedeco.cuda.cudart.CUlaunchConfig;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.PointerPointer;

/**
 * A launch with everything but the stream laid down beforehand: shape, attributes and the array of
 * parameters lie in memory of their own, so that a launch allocates nothing. Used by one thread at
 * a time.
 */
final class CudaLaunch implements AutoCloseable {
  // CUlaunchConfig: three words of the grid, three of the CTA, shared bytes, stream, attributes.
  private static final long CONFIG_BYTES = 56;
  private static final long STREAM = 32;
  private static final long ATTRIBUTES = 40;
  private static final long ATTRIBUTE_COUNT = 48;

  // CUlaunchAttribute: its number, then from byte 8 its value.
  private static final long ATTRIBUTE_BYTES = 72;
  private static final long VALUE = 8;

  private final CudaKernel kernel;
  private final CUfunc_st function;
  private final Arena arena = Arena.ofShared();
  private final MemorySegment config;
  private final CUlaunchConfig configPointer;
  private final PointerPointer<?> parameterPointer;
  private final List<MemorySegment> parameters = new ArrayList<>();

  /**
   * The shape of a launch.
   *
   * @param ctas CTAs of the grid
   * @param threads threads of a CTA
   * @param sharedBytes dynamic shared memory of a CTA
   * @param cluster CTAs of a cluster, 1 for none
   * @param cooperative whether the driver refuses it unless all CTAs are resident at once
   * @param overlapping whether it may begin before the launch before it in the stream has ended;
   *     the kernel itself waits for that (programmatic dependent launch)
   */
  record Shape(
      int ctas,
      int threads,
      int sharedBytes,
      int cluster,
      boolean cooperative,
      boolean overlapping) {
    /** A plain launch. */
    static Shape of(int ctas, int threads, int sharedBytes) {
      return new Shape(ctas, threads, sharedBytes, 1, false, false);
    }
  }

  /**
   * Lays a launch down.
   *
   * @param kernel what to launch
   * @param shape how
   * @param parameterBytes the size of each of its parameters
   */
  CudaLaunch(CudaKernel kernel, Shape shape, long... parameterBytes) {
    this.kernel = kernel;
    this.function = kernel.function();
    this.config = arena.allocate(CONFIG_BYTES, 8);
    set(config, 0, shape.ctas());
    set(config, 4, 1);
    set(config, 8, 1);
    set(config, 12, shape.threads());
    set(config, 16, 1);
    set(config, 20, 1);
    set(config, 24, shape.sharedBytes());
    MemorySegment attributes = arena.allocate(3 * ATTRIBUTE_BYTES, 8);
    int count = 0;
    if (shape.cooperative()) {
      attribute(attributes, count++, cudart.CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 1);
    }
    if (shape.overlapping()) {
      attribute(
          attributes, count++, cudart.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, 1);
    }
    if (shape.cluster() > 1) {
      attribute(
          attributes, count++, cudart.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, shape.cluster(), 1, 1);
    }
    config.set(ValueLayout.JAVA_LONG, ATTRIBUTES, attributes.address());
    set(config, ATTRIBUTE_COUNT, count);
    MemorySegment array = arena.allocate(Math.max(1, parameterBytes.length) * 8L, 8);
    for (int i = 0; i < parameterBytes.length; i++) {
      MemorySegment parameter = arena.allocate(parameterBytes[i], 64);
      parameters.add(parameter);
      array.setAtIndex(ValueLayout.JAVA_LONG, i, parameter.address());
    }
    configPointer = new CUlaunchConfig(new Address(config.address()));
    parameterPointer = new PointerPointer<>(new Address(array.address()));
  }

  private static void set(MemorySegment memory, long offset, int value) {
    memory.set(ValueLayout.JAVA_INT, offset, value);
  }

  private static void attribute(MemorySegment memory, int index, int number, int... values) {
    long at = index * ATTRIBUTE_BYTES;
    set(memory, at, number);
    for (int i = 0; i < values.length; i++) {
      set(memory, at + VALUE + 4L * i, values[i]);
    }
  }

  /**
   * The bytes of a parameter, which each launch reads anew.
   *
   * @param index its place in the kernel's signature
   */
  MemorySegment parameter(int index) {
    return parameters.get(index);
  }

  /**
   * Puts the launch into a stream. Allocates nothing.
   *
   * @param stream its opaque address
   * @throws org.mkernel.api.DeviceException when the driver refuses it
   */
  void launch(long stream) {
    config.set(ValueLayout.JAVA_LONG, STREAM, stream);
    try (CudaContext.Scope _ = kernel.context().enter()) {
      int code =
          cudart.cuLaunchKernelEx(
              configPointer, function, parameterPointer, (PointerPointer<?>) null);
      if (code != cudart.CUDA_SUCCESS) {
        throw Driver.failure(code, "cuLaunchKernelEx of " + kernel.name());
      }
    }
  }

  @Override
  public void close() {
    arena.close();
  }
}
