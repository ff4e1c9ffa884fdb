package org.mkernel.kernels.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Optional;
import java.util.SplittableRandom;
import org.bytedeco.cuda.cudart.CUctx_st;
import org.bytedeco.cuda.global.cudart;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.mkernel.api.Availability;
import org.mkernel.api.DType;
import org.mkernel.api.DeviceException;
import org.mkernel.api.Stopwatch;
import org.mkernel.api.spi.Device;

@Tag("gpu")
final class GpuDeviceTest {
  private CudaDevice device;

  @BeforeEach
  void open() {
    device = (CudaDevice) new CudaDeviceProvider().open(0, Thread::new);
  }

  @AfterEach
  void close() {
    device.close();
  }

  private static long contextNow() {
    CUctx_st context = new CUctx_st();
    Driver.check(cudart.cuCtxGetCurrent(context), "cuCtxGetCurrent");
    return context.address();
  }

  @Test
  void memoryIsZeroedAndAligned() {
    for (long alignment : new long[] {1, 256, 4096, 1 << 16}) {
      try (Device.Memory memory = device.allocate(10_000, alignment)) {
        assertThat(memory.address() % alignment).isZero();
        byte[] bytes = new byte[10_000];
        device.read(memory.address(), MemorySegment.ofArray(bytes));
        assertThat(bytes).containsOnly(0);
        device.write(MemorySegment.ofArray(new byte[10_000]).fill((byte) 1), memory.address());
      }
    }
    try (Device.Memory nothing = device.allocate(0, 256)) {
      assertThat(nothing.address()).isZero();
    }
  }

  @Test
  void bytesGoToTheDeviceAndComeBack() {
    byte[] bytes = new byte[(9 << 20) + 13];
    new SplittableRandom(1).nextBytes(bytes);
    try (Device.Memory memory = device.allocate(bytes.length, 256);
        Arena arena = Arena.ofConfined()) {
      device.write(MemorySegment.ofArray(bytes), memory.address());
      MemorySegment natively = arena.allocate(bytes.length);
      device.read(memory.address(), natively);
      assertThat(natively.mismatch(MemorySegment.ofArray(bytes))).isEqualTo(-1);
      byte[] back = new byte[bytes.length];
      device.read(memory.address(), MemorySegment.ofArray(back));
      assertThat(back).isEqualTo(bytes);
    }
  }

  @Test
  void aCopyQueueStoresAfterItCopied() {
    long bytes = 16 << 20;
    try (Device.Memory from = device.allocate(bytes, 256);
        Device.Pinned to = device.pinned(bytes + 8, 8);
        Device.CopyQueue queue = device.copyQueue()) {
      MemorySegment seen = HostMemory.segment(to.hostAddress(), bytes + 8);
      for (byte round = 1; round < 10; round++) {
        device.write(
            MemorySegment.ofArray(new byte[1 << 20]).fill(round),
            from.address() + bytes - (1 << 20));
        queue.copy(from.address(), to.address(), bytes);
        queue.store(to.address() + bytes, round);
        long deadline = System.nanoTime() + 10_000_000_000L;
        while ((long) ValueLayout.JAVA_LONG.varHandle().getAcquire(seen, bytes) != round) {
          assertThat(System.nanoTime()).isLessThan(deadline);
        }
        assertThat(seen.get(ValueLayout.JAVA_BYTE, bytes - 1)).isEqualTo(round);
      }
    }
  }

  @Test
  void memoryOfThisProcessIsMappedWhereItLies() {
    try (Device.Memory memory = device.allocate(4096, 256)) {
      byte[] handle = device.export(memory.address() + 512, 1024);
      try (Device.Memory mapped = device.map(handle)) {
        assertThat(mapped.address()).isEqualTo(memory.address() + 512);
        assertThat(mapped.bytes()).isEqualTo(1024);
      }
      assertThatThrownBy(() -> device.export(memory.address(), 1L << 40))
          .isInstanceOf(DeviceException.class)
          .hasMessageContaining("not inside of one allocation");
    }
  }

  @Test
  void tooMuchIsRefusedWithTheNumbers() {
    assertThatThrownBy(() -> device.allocate(1L << 45, 256))
        .isInstanceOfSatisfying(
            DeviceException.class,
            e -> {
              assertThat(e.failure().nativeCode()).hasValue(2);
              assertThat(e.failure().remedy()).isPresent();
            })
        .hasMessageContainingAll("cuMemAlloc of 35184372088832 bytes", "CUDA_ERROR_OUT_OF_MEMORY");
  }

  @Test
  void theCallersContextStaysCurrent() {
    long before = contextNow();
    device.allocate(100, 1).close();
    device.context().freeBytes();
    assertThatThrownBy(() -> device.allocate(1L << 45, 256)).isInstanceOf(DeviceException.class);
    assertThat(contextNow()).isEqualTo(before);
  }

  @Test
  void aKernelRunsWithItsParametersAsOftenAsItIsLaunched() {
    CudaCompiler nvrtc = new Nvrtc();
    assumeTrue(nvrtc.availability().isAvailable(), () -> nvrtc.availability().describe());
    CubinStore store = new CubinStore(List.of(), Optional.empty(), nvrtc);
    byte[] cubin = store.get(TestPrograms.scale()).cubin();
    try (CudaModule module = CudaModule.load(device.context(), cubin);
        Device.Memory memory = device.allocate(32 * 4, 256)) {
      assertThatThrownBy(() -> module.kernel("nothing"))
          .isInstanceOf(DeviceException.class)
          .hasMessageContainingAll("nothing", "CUDA_ERROR_NOT_FOUND");
      CudaKernel kernel = module.kernel("scale");
      assertThat(kernel.registers()).isBetween(1, 32);
      assertThat(kernel.ctasPerMultiprocessor(32, 0)).isGreaterThan(1);
      float[] values = new float[32];
      java.util.Arrays.fill(values, 1);
      device.write(MemorySegment.ofArray(values), memory.address());
      try (CudaLaunch launch =
              new CudaLaunch(kernel, new CudaLaunch.Shape(1, 32, 0, 1, true, false), 8, 4);
          Stopwatch stopwatch = device.stopwatch().orElseThrow()) {
        launch.parameter(0).set(ValueLayout.JAVA_LONG, 0, memory.address());
        launch.parameter(1).set(ValueLayout.JAVA_FLOAT, 0, 3f);
        stopwatch.start(0);
        launch.launch(device.stream().address());
        launch.launch(device.stream().address());
        stopwatch.stop(0);
        assertThat(stopwatch.nanos()).isBetween(500L, 1_000_000_000L);
        assertThat(device.stream().isIdle()).isTrue();
      }
      device.read(memory.address(), MemorySegment.ofArray(values));
      assertThat(values).containsOnly(9f);
    }
  }

  @Test
  void aLaunchThatDoesNotFitIsRefusedByName() {
    CudaCompiler nvrtc = new Nvrtc();
    assumeTrue(nvrtc.availability().isAvailable(), () -> nvrtc.availability().describe());
    try (CudaModule module =
            CudaModule.load(device.context(), nvrtc.compile(TestPrograms.scale()).cubin());
        CudaLaunch launch =
            new CudaLaunch(
                module.kernel("scale"),
                new CudaLaunch.Shape(1 << 20, 1024, 0, 1, true, false),
                8,
                4)) {
      assertThatThrownBy(() -> launch.launch(device.stream().address()))
          .isInstanceOf(DeviceException.class)
          .hasMessageContainingAll("scale", "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE");
    }
  }

  @Test
  void stockKernelsLoad() {
    for (CudaProgram program : StockKernels.all()) {
      CubinEntry entry = CubinStore.ofUser().get(program);
      try (CudaModule module = CudaModule.load(device.context(), entry.cubin())) {
        assertThat(module.kernel("mkernel_interpreter").localBytes()).isZero();
      }
    }
  }

  @Test
  void matricesAreDescribedToTheCopyEngineAndBadOnesRefused() {
    try (Device.Memory memory = device.allocate(1 << 20, 256);
        Arena arena = Arena.ofConfined();
        CudaContext.Scope _ = device.context().enter()) {
      MemorySegment slot = arena.allocate(TensorMap.BYTES, TensorMap.BYTES);
      TensorMap.encode(
          slot,
          DType.BF16,
          memory.address(),
          new long[] {256, 128},
          new long[] {512},
          new int[] {64, 128},
          TensorMap.Swizzle.BYTES_128);
      assertThat(slot.mismatch(arena.allocate(TensorMap.BYTES))).isNotEqualTo(-1);
      assertThatThrownBy(() ->
              TensorMap.encode(
                  slot,
                  DType.BF16,
                  memory.address() + 2,
                  new long[] {256, 128},
                  new long[] {510},
                  new int[] {64, 128},
                  TensorMap.Swizzle.BYTES_128))
          .isInstanceOf(DeviceException.class)
          .hasMessageContainingAll("bf16", "[256, 128]", "[510]", "CUDA_ERROR_INVALID_VALUE");
    }
  }

  @Test
  void cublasMultipliesMatricesByRows() {
    Availability availability = Cublas.availability();
    assumeTrue(availability.isAvailable(), availability::describe);
    int m = 5;
    int n = 7;
    int k = 3;
    float[] a = new float[m * k];
    float[] b = new float[k * n];
    float[] bTransposed = new float[n * k];
    SplittableRandom random = new SplittableRandom(1);
    for (int i = 0; i < a.length; i++) {
      a[i] = random.nextInt(9) - 4;
    }
    for (int i = 0; i < b.length; i++) {
      b[i] = random.nextInt(9) - 4;
      bTransposed[i % n * k + i / n] = b[i];
    }
    try (Device.Memory memory = device.allocate(4096, 256);
        Cublas blas = new Cublas(device.context())) {
      blas.useStream(device.stream().address());
      for (boolean transposed : new boolean[] {false, true}) {
        long at = memory.address();
        device.write(MemorySegment.ofArray(a), at);
        device.write(MemorySegment.ofArray(transposed ? bTransposed : b), at + 1024);
        blas.multiply(
            new Cublas.Product(
                DType.F32,
                transposed,
                m,
                n,
                k,
                new Address(at),
                k,
                new Address(at + 1024),
                transposed ? k : n,
                new Address(at + 2048),
                n));
        device.stream().synchronize();
        float[] c = new float[m * n];
        device.read(at + 2048, MemorySegment.ofArray(c));
        for (int i = 0; i < c.length; i++) {
          float sum = 0;
          for (int l = 0; l < k; l++) {
            sum += a[i / n * k + l] * b[l * n + i % n];
          }
          assertThat(c[i]).as("element %d, transposed %s", i, transposed).isEqualTo(sum);
        }
      }
    }
  }
}
