package org.mkernel.kernels.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.bytedeco.cuda.cudart.CUgraphExec_st;
import org.bytedeco.cuda.cudart.CUgraph_st;
import org.bytedeco.cuda.global.cudart;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.mkernel.api.DType;
import org.mkernel.api.DeviceException;
import org.mkernel.api.Failure;
import org.mkernel.api.UnavailableException;
import org.mkernel.api.schedule.Kernel;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.schedule.ScheduleBuilder;
import org.mkernel.api.schedule.SignalSpec;
import org.mkernel.api.schedule.Topology;
import org.mkernel.api.spi.ExecutionPlan;

/** The interpreter on a GPU, with schedules that are made for it. */
@Tag("gpu")
final class CudaExecutableTest {
  private static final long SECONDS_10 = TimeUnit.SECONDS.toNanos(10);

  private Gpu gpu;

  @BeforeEach
  void open() {
    gpu = Gpu.open();
  }

  @AfterEach
  void close() {
    if (gpu != null) {
      gpu.close();
    }
  }

  private void run(TestPlan plan) {
    try (CudaExecutable executable = new CudaExecutable(gpu.device, plan)) {
      for (long epoch = 1; epoch <= 3; epoch++) {
        executable.launch(0, epoch);
        assertThat(executable.await(epoch, SECONDS_10)).isTrue();
        assertThat(executable.completed()).isEqualTo(epoch);
      }
    }
    assertThat(plan.stalls).isEmpty();
    assertThat(plan.failures).isEmpty();
  }

  @Test
  void sumsProductsOverSeveralParts() {
    for (DType dtype : new DType[] {DType.BF16, DType.F16}) {
      for (int parts : new int[] {1, 2, 3, 7}) {
        int m = 200;
        int n = 520;
        int k = 1000;
        TestPlan plan = gpu.plan(Tiles.product(dtype, m, n, k, parts), 5, 1000);
        float[] a = Gpu.integers(parts, m * k);
        float[] b = Gpu.integers(~parts, k * n);
        gpu.write(plan.buffer(0, 0), dtype, a);
        gpu.write(plan.buffer(0, 1), dtype, b);
        run(plan);
        assertThat(gpu.read(plan.buffer(0, 2), dtype, m * n))
            .as("%s in %d parts", dtype, parts)
            .isEqualTo(Gpu.product(dtype, a, b, m, n, k));
      }
    }
  }

  @Test
  void runsChainsOfProductsThatWaitForEachOther() {
    int n = 384;
    int steps = 12;
    for (int lanes : new int[] {1, 3, gpu.device.multiprocessors()}) {
      TestPlan plan = gpu.plan(Tiles.chain(DType.BF16, n, steps, true), lanes, 2000);
      float[] shift = new float[n * n];
      for (int i = 0; i < n; i++) {
        shift[i * n + (i + 1) % n] = 1;
      }
      float[] x = Gpu.integers(lanes, n * n);
      gpu.write(plan.buffer(0, 0), DType.BF16, shift);
      gpu.write(plan.buffer(0, 1), DType.BF16, x);
      run(plan);
      float[] last = gpu.read(plan.buffer(0, 1 + steps), DType.BF16, n * n);
      for (int i = 0; i < n * n; i++) {
        assertThat(last[i / n * n + (i % n + steps) % n]).isEqualTo(x[i]);
      }
    }
  }

  @Test
  void addsInTheOrderGivenWhateverTheAlignment() {
    for (int columns : new int[] {64, 33}) {
      int rows = 37;
      int count = rows * columns;
      ScheduleBuilder builder = new ScheduleBuilder("sum", Topology.of(1, 1));
      long bytes = 2L * count;
      int[] sources = new int[9];
      for (int i = 0; i < sources.length; i++) {
        sources[i] = builder.input("s" + i, DType.BF16, new long[] {bytes});
      }
      int to = builder.output("to", DType.BF16, new long[] {bytes});
      ScheduleBuilder.RankBuilder rank = builder.rank(0);
      int pool = rank.pool("sum");
      long pitch = 2L * columns;
      rank.reduce().stream();
      for (int source : sources) {
        rank.part(rank.region(source, 0, rows, pitch, pitch));
      }
      rank.output(rank.region(to, 0, rows, pitch, pitch));
      rank.role("compute", true, pool);
      TestPlan plan = gpu.plan(builder.build(), 2, 1000);
      java.util.Random random = new java.util.Random(columns);
      float[] sum = new float[count];
      for (int i = 0; i < sources.length; i++) {
        float[] values = new float[count];
        for (int e = 0; e < count; e++) {
          values[e] = DType.BF16.decode(DType.BF16.encode(random.nextFloat() - 0.5f));
          sum[e] += values[e];
        }
        gpu.write(plan.buffer(0, sources[i]), DType.BF16, values);
      }
      run(plan);
      float[] seen = gpu.read(plan.buffer(0, to), DType.BF16, count);
      for (int e = 0; e < count; e++) {
        assertThat(seen[e]).isEqualTo(DType.BF16.decode(DType.BF16.encode(sum[e])));
      }
    }
  }

  @Test
  void copiesRowsBetweenAnyPitches() {
    for (int[] shape :
        new int[][] {{5, 3, 7, 11}, {64, 64, 64, 128}, {1, 100000, 100000, 100000}}) {
      int rows = shape[0];
      int columns = shape[1];
      ScheduleBuilder builder = new ScheduleBuilder("copy", Topology.of(1, 1));
      int from = builder.input("from", DType.F16, new long[] {2L * rows * shape[2]});
      int to = builder.output("to", DType.F16, new long[] {2L * rows * shape[3]});
      int copy = builder.kernel(new Kernel(Kernel.COPY, Map.of()));
      ScheduleBuilder.RankBuilder rank = builder.rank(0);
      int pool = rank.pool("copy");
      rank.compute(copy).stream()
          .part(rank.region(from, 0, rows, 2L * columns, 2L * shape[2]))
          .output(rank.region(to, 0, rows, 2L * columns, 2L * shape[3]));
      rank.role("compute", true, pool);
      TestPlan plan = gpu.plan(builder.build(), 1, 1000);
      float[] values = Gpu.integers(rows, rows * shape[2]);
      gpu.write(plan.buffer(0, from), DType.F16, values);
      run(plan);
      float[] seen = gpu.read(plan.buffer(0, to), DType.F16, rows * shape[3]);
      for (int row = 0; row < rows; row++) {
        for (int column = 0; column < shape[3]; column++) {
          assertThat(seen[row * shape[3] + column])
              .isEqualTo(column < columns ? values[row * shape[2] + column] : 0f);
        }
      }
    }
  }

  @Test
  void tellsWhichWaitExpiredAndLeavesTheGpuFree() {
    Schedule schedule = Tiles.chain(DType.BF16, 384, 3, false);
    TestPlan plan = gpu.plan(schedule, 20, 200);
    try (CudaExecutable executable = new CudaExecutable(gpu.device, plan)) {
      executable.launch(0, 1);
      assertThat(executable.await(1, SECONDS_10)).isFalse();
    }
    assertThat(plan.stalls).hasSize(1);
    ExecutionPlan.Stall stall = plan.stalls.getFirst();
    assertThat(schedule.signalName(stall.signal())).isEqualTo("start[0]");
    assertThat(stall.wanted()).isEqualTo(1);
    assertThat(stall.seen()).isZero();
    assertThat(stall.epoch()).isEqualTo(1);
    TestPlan next = gpu.plan(Tiles.product(DType.BF16, 512, 512, 64, 1), 132, 1000);
    run(next);
  }

  @Test
  void leavesWhenTheWorldIsAborted() throws Exception {
    TestPlan plan = gpu.plan(Tiles.chain(DType.BF16, 384, 3, false), 132, 600_000);
    long start;
    try (CudaExecutable executable = new CudaExecutable(gpu.device, plan)) {
      executable.launch(0, 1);
      assertThat(executable.await(1, TimeUnit.MILLISECONDS.toNanos(50))).isFalse();
      start = System.nanoTime();
      boolean _ = plan.abort().set(new DeviceException("the test ends it", Failure.UNKNOWN));
      assertThat(executable.await(1, SECONDS_10)).isFalse();
    }
    assertThat(System.nanoTime() - start).isLessThan(TimeUnit.SECONDS.toNanos(1));
  }

  @Test
  void waitsForMultiprocessorsThatAnotherKernelHolds() {
    int all = gpu.device.multiprocessors();
    // Enough tasks that every lane holds one.
    TestPlan holder = gpu.plan(Tiles.chain(DType.BF16, 2048, 3, false), all, 1000);
    TestPlan plan = gpu.plan(Tiles.product(DType.BF16, 512, 512, 64, 1), all, 1000);
    try (CudaExecutable holding = new CudaExecutable(gpu.device, holder);
        CudaExecutable waiting = new CudaExecutable(gpu.device, plan);
        CudaStream stream = new CudaStream(gpu.device.context())) {
      holding.launch(0, 1);
      waiting.launch(stream.address(), 1);
      assertThat(waiting.await(1, TimeUnit.MILLISECONDS.toNanos(100))).isFalse();
      // The other one gives up when its wait expires.
      assertThat(holding.await(1, SECONDS_10)).isFalse();
      assertThat(waiting.await(1, SECONDS_10)).isTrue();
    }
  }

  @Test
  void refusesMoreLanesThanTheGpuHolds() {
    TestPlan plan = gpu.plan(Tiles.product(DType.BF16, 128, 256, 64, 1), 1000, 100);
    assertThatThrownBy(() -> new CudaExecutable(gpu.device, plan).close())
        .isInstanceOf(UnavailableException.class)
        .hasMessageContaining("1000 lanes");
  }

  @Test
  void replaysInGraphsWithChangingInputs() {
    int n = 64;
    DType dtype = DType.BF16;
    TestPlan first = gpu.plan(Tiles.product(dtype, n, n, n, 1), 2, 1000);
    TestPlan second = gpu.plan(Tiles.product(dtype, n, n, n, 1), 3, 1000);
    float[] b = new float[n * n];
    for (int i = 0; i < n; i++) {
      b[i * n + (i * 7 + 3) % n] = 1;
    }
    gpu.write(first.buffer(0, 1), dtype, b);
    gpu.write(second.buffer(0, 1), dtype, b);
    try (CudaExecutable one = new CudaExecutable(gpu.device, first);
        CudaExecutable two = new CudaExecutable(gpu.device, second);
        CudaStream stream = new CudaStream(gpu.device.context());
        CudaContext.Scope _ = gpu.device.context().enter()) {
      Driver.check(
          cudart.cuStreamBeginCapture(stream.handle(), cudart.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
          "cuStreamBeginCapture");
      assertThat(one.records(stream.address())).isTrue();
      one.launch(stream.address(), 0);
      // The second operation multiplies what the first one gave.
      Driver.check(
          cudart.cuMemcpyAsync(
              second.buffer(0, 0), first.buffer(0, 2), 2L * n * n, stream.handle()),
          "cuMemcpyAsync");
      two.launch(stream.address(), 0);
      one.launch(stream.address(), 0);
      CUgraph_st graph = new CUgraph_st();
      Driver.check(cudart.cuStreamEndCapture(stream.handle(), graph), "cuStreamEndCapture");
      CUgraphExec_st executable = new CUgraphExec_st();
      Driver.check(cudart.cuGraphInstantiate(executable, graph, 0), "cuGraphInstantiate");
      int replays = 10_000;
      for (int replay = 1; replay <= replays; replay++) {
        float[] a = Gpu.integers(replay, n * n);
        gpu.write(first.buffer(0, 0), dtype, a);
        Driver.check(cudart.cuGraphLaunch(executable, stream.handle()), "cuGraphLaunch");
        stream.synchronize();
        float[] seen = gpu.read(second.buffer(0, 2), dtype, n * n);
        for (int i = 0; i < n * n; i++) {
          int once = (i % n * 7 + 3) % n;
          int twice = (once * 7 + 3) % n;
          if (seen[i / n * n + twice] != a[i]) {
            throw new AssertionError("element %d is wrong in replay %d".formatted(i, replay));
          }
        }
      }
      assertThat(one.completed()).isEqualTo(2L * replays);
      assertThat(two.completed()).isEqualTo(replays);
      Driver.check(cudart.cuGraphExecDestroy(executable), "cuGraphExecDestroy");
      Driver.check(cudart.cuGraphDestroy(graph), "cuGraphDestroy");
      one.launch(0, 2L * replays + 1);
      assertThat(one.await(2L * replays + 1, SECONDS_10)).isTrue();
    }
  }

  @Test
  void raisesFlagsForNotifications() {
    ScheduleBuilder builder = new ScheduleBuilder("notify", Topology.of(1, 1));
    int flags = builder.flags("flags", 40, SignalSpec.Scope.SYSTEM);
    ScheduleBuilder.RankBuilder rank = builder.rank(0);
    int pool = rank.pool("notify");
    for (int i = 39; i >= 0; i--) {
      rank.notifies();
      if (i < 39) {
        rank.await(flags + i + 1);
      }
      rank.raise(0, flags + i);
    }
    rank.role("notify", false, pool);
    run(gpu.plan(builder.build(), 4, 1000));
  }
}
