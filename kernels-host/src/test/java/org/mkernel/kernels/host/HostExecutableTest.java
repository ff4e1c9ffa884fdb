package org.mkernel.kernels.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.mkernel.api.DType;
import org.mkernel.api.DeviceException;
import org.mkernel.api.UnavailableException;
import org.mkernel.api.UsageException;
import org.mkernel.api.schedule.Kernel;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.schedule.ScheduleBuilder;
import org.mkernel.api.schedule.SignalSpec;
import org.mkernel.api.schedule.Topology;
import org.mkernel.api.spi.Executable;
import org.mkernel.api.spi.ExecutionPlan;
import org.mkernel.api.spi.HostKernelSet;

class HostExecutableTest {
  private static final long LONG = TimeUnit.SECONDS.toNanos(60);

  @ParameterizedTest
  @CsvSource({
    "1, 1, false, 200",
    "2, 1, false, 200",
    "3, 2, false, 200",
    "4, 4, false, 200",
    "2, 3, true, 200",
    "4, 1, true, 200",
    "4, 4, true, 200",
    "16, 2, false, 30",
    "16, 2, true, 30"
  })
  void gathersEpochAfterEpoch(int size, int lanes, boolean readyFirst, int epochs)
      throws Exception {
    try (Ranks ranks = new Ranks(Gather.schedule(size, readyFirst));
        ExecutorService drivers = Executors.newFixedThreadPool(size)) {
      ranks.lanes = lanes;
      ranks.prepare();
      List<Future<Integer>> wrong = new ArrayList<>();
      for (int rank = 0; rank < size; rank++) {
        int self = rank;
        wrong.add(drivers.submit(() -> drive(ranks, self, epochs)));
      }
      for (Future<Integer> each : wrong) {
        assertThat(each.get(120, TimeUnit.SECONDS)).isZero();
      }
      assertThat(ranks.expired).isEmpty();
      assertThat(ranks.failed).isEmpty();
    }
  }

  private static int drive(Ranks ranks, int rank, int epochs) {
    int wrong = 0;
    Executable executable = ranks.executable(rank);
    for (long epoch = 1; epoch <= epochs; epoch++) {
      Gather.fill(ranks.buffers[rank][0], rank, epoch);
      executable.launch(0, epoch);
      if (!executable.await(epoch, LONG)) {
        return Integer.MAX_VALUE;
      }
      wrong += Gather.wrong(ranks.buffers[rank][1], ranks.buffers.length, epoch);
    }
    return wrong;
  }

  @Test
  void launchAllocatesNothing() throws ReflectiveOperationException {
    Allocation allocation = new Allocation();
    try (Ranks ranks = new Ranks(Gather.schedule(1, false)).prepare()) {
      Executable executable = ranks.executable(0);
      long epoch = 0;
      long allocated = 0;
      for (int i = 0; i < 2_000; i++) {
        long before = allocation.of(Thread.currentThread());
        executable.launch(0, ++epoch);
        long after = allocation.of(Thread.currentThread());
        if (i >= 1_000) {
          allocated += after - before;
        }
        assertThat(executable.await(epoch, LONG)).isTrue();
      }
      // What asking costs comes off: two boxed numbers each time. The smallest object has 16 bytes:
      // what is less than that per launch the JIT did once.
      long asking = -allocation.of(Thread.currentThread()) + allocation.of(Thread.currentThread());
      assertThat(allocated).isLessThan(1_000 * (asking + 16));
    }
  }

  @Test
  void lanesAllocateNothing() throws ReflectiveOperationException {
    Allocation allocation = new Allocation();
    try (Ranks ranks = new Ranks(Gather.schedule(2, true)).prepare()) {
      long epoch = 0;
      long before = 0;
      for (int i = 0; i < 3_000; i++) {
        if (i == 2_000) {
          before = sum(allocation, ranks);
        }
        epoch++;
        ranks.executable(0).launch(0, epoch);
        ranks.executable(1).launch(0, epoch);
        assertThat(ranks.executable(0).await(epoch, LONG)).isTrue();
        assertThat(ranks.executable(1).await(epoch, LONG)).isTrue();
      }
      assertThat(sum(allocation, ranks) - before).isLessThan(1_000);
    }
  }

  private static long sum(Allocation allocation, Ranks ranks) throws ReflectiveOperationException {
    long sum = 0;
    for (Thread thread : ranks.threads) {
      sum += allocation.of(thread);
    }
    return sum;
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void anExpiredWaitSaysWhatItWaitedFor(boolean readyFirst) {
    try (Ranks ranks = new Ranks(stuck(readyFirst))) {
      ranks.waitNanos = TimeUnit.MILLISECONDS.toNanos(200);
      ranks.prepare();
      int never = ranks.schedule.signals().get(1).first();
      ranks.executable(0).launch(0, 1);
      assertThat(ranks.executable(0).await(1, LONG)).isFalse();
      assertThat(ranks.expired).containsExactly(new ExecutionPlan.Stall(0, 0, 1, never, 3, 0, 1));
      assertThat(ranks.executable(0).completed()).isZero();
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void anAbortEndsWaitsAtOnce(boolean readyFirst) throws InterruptedException {
    Ranks ranks = new Ranks(stuck(readyFirst)).prepare();
    ranks.executable(0).launch(0, 1);
    int never = ranks.schedule.signals().get(1).first();
    List<ExecutionPlan.Stall> stalls = ranks.executable(0).stalls();
    for (int i = 0; i < 2_000 && stalls.isEmpty(); i++) {
      Thread.sleep(1);
      stalls = ranks.executable(0).stalls();
    }
    assertThat(stalls).containsExactly(new ExecutionPlan.Stall(0, 0, 1, never, 3, 0, 1));
    ranks.abort.set(new DeviceException("enough"));
    long start = System.nanoTime();
    assertThat(ranks.executable(0).await(1, LONG)).isFalse();
    ranks.close();
    assertThat(System.nanoTime() - start).isLessThan(TimeUnit.MILLISECONDS.toNanos(500));
    assertThat(ranks.threads).noneMatch(Thread::isAlive);
    assertThat(ranks.expired).isEmpty();
  }

  /** A task that runs, then one that waits for what nothing raises. */
  private static Schedule stuck(boolean readyFirst) {
    ScheduleBuilder b = new ScheduleBuilder("stuck", Topology.of(1, 1));
    int never = b.counters("never", 1, SignalSpec.Scope.DEVICE);
    int ran = b.flags("ran", 2, SignalSpec.Scope.DEVICE);
    ScheduleBuilder.RankBuilder r = b.rank(0);
    int pool = r.pool("pool");
    r.notifies().raise(0, ran);
    r.notifies().await(never, 3, 0).raise(0, ran + 1);
    if (readyFirst) {
      r.readyFirstRole("role", false, pool);
    } else {
      r.role("role", false, pool);
    }
    return b.build();
  }

  @Test
  void aReadyHeadIsNotHeldUpByOneThatWaits() {
    ScheduleBuilder b = new ScheduleBuilder("crossed", Topology.of(1, 1));
    int flags = b.flags("flags", 4, SignalSpec.Scope.DEVICE);
    ScheduleBuilder.RankBuilder r = b.rank(0);
    int first = r.pool("first");
    r.notifies().await(flags + 2).raise(0, flags);
    r.notifies().raise(0, flags + 1);
    int second = r.pool("second");
    r.notifies().raise(0, flags + 2);
    r.notifies().await(flags + 1).raise(0, flags + 3);
    r.readyFirstRole("role", false, first, second);
    try (Ranks ranks = new Ranks(b.build()).prepare()) {
      for (long epoch = 1; epoch <= 100; epoch++) {
        ranks.executable(0).launch(0, epoch);
        assertThat(ranks.executable(0).await(epoch, LONG)).isTrue();
        assertThat(ranks.signal(0, flags + 3)).isEqualTo(epoch);
      }
    }
  }

  @Test
  void aKernelThatThrowsIsReportedWithItsTask() {
    ScheduleBuilder b = new ScheduleBuilder("failing", Topology.of(1, 1));
    int buffer = b.workspace("w", DType.F32, 16, 1);
    int kernel = b.kernel(new Kernel("test.fails", Map.of()));
    int ran = b.flags("ran", 1, SignalSpec.Scope.DEVICE);
    ScheduleBuilder.RankBuilder r = b.rank(0);
    int pool = r.pool("pool");
    r.notifies().raise(0, ran);
    r.compute(kernel).output(r.region(buffer, 0, 1, 16, 16));
    r.role("compute", true, pool);
    StackOverflowError cause = new StackOverflowError("deep");
    Ranks ranks = new Ranks(b.build());
    ranks.kernels = List.of(new Throwing(cause));
    try (ranks) {
      ranks.prepare();
      ranks.executable(0).launch(0, 1);
      assertThat(ranks.executable(0).await(1, LONG)).isFalse();
      assertThat(ranks.failed).containsExactly(new Ranks.Failed(1, cause));
    }
  }

  private record Throwing(Error cause) implements HostKernelSet {
    @Override
    public boolean supports(String kind) {
      return kind.equals("test.fails");
    }

    @Override
    public HostKernel kernel(Kernel kernel) {
      return task -> {
        throw cause;
      };
    }
  }

  @Test
  void aKernelThatNobodyHasIsMissedWhenPrepared() {
    ScheduleBuilder b = new ScheduleBuilder("unknown", Topology.of(1, 1));
    int kernel = b.kernel(new Kernel("test.unknown", Map.of()));
    ScheduleBuilder.RankBuilder r = b.rank(0);
    int pool = r.pool("pool");
    r.compute(kernel);
    r.role("compute", true, pool);
    try (Ranks ranks = new Ranks(b.build())) {
      assertThatThrownBy(ranks::prepare)
          .isInstanceOf(UnavailableException.class)
          .hasMessageContaining("test.unknown");
    }
  }

  private static Schedule onePut() {
    ScheduleBuilder b = new ScheduleBuilder("put", Topology.of(2, 1));
    int in = b.input("a", DType.F32, new long[] {16, 16});
    int staged = b.workspace("staged", DType.F32, 16, 2);
    int arrived = b.flags("arrived", 1, SignalSpec.Scope.SYSTEM);
    int done = b.flags("done", 1, SignalSpec.Scope.DEVICE);
    ScheduleBuilder.RankBuilder r = b.rank(0);
    int pool = r.pool("put");
    r.put(r.region(in, 0, 1, 16, 16), r.regionOf(1, staged, 0, 1, 16, 16), arrived).raise(0, done);
    r.role("move", false, pool);
    return b.build();
  }

  @Test
  void aPutByWireIsACommandAndRaisesNothing() {
    try (Ranks ranks = new Ranks(onePut())) {
      AtomicInteger refusals = new AtomicInteger(500);
      Queue<String> commands = new ConcurrentLinkedQueue<>();
      ranks.wiredTask = 0;
      ranks.commands =
          (transfer, epoch) ->
              refusals.getAndDecrement() <= 0 && commands.add(transfer + "@" + epoch);
      ranks.prepare();
      ranks.executable(0).launch(0, 1);
      assertThat(ranks.executable(0).await(1, LONG)).isTrue();
      assertThat(commands).containsExactly("7@1");
      for (int signal = 0; signal < ranks.schedule.signalCount(); signal++) {
        assertThat(ranks.signal(0, signal)).isZero();
        assertThat(ranks.signal(1, signal)).isZero();
      }
    }
  }

  @Test
  void aQueueThatStaysFullEndsTheLaunch() {
    try (Ranks ranks = new Ranks(onePut())) {
      ranks.wiredTask = 0;
      ranks.waitNanos = TimeUnit.MILLISECONDS.toNanos(100);
      ranks.prepare();
      ranks.executable(0).launch(0, 1);
      assertThat(ranks.executable(0).await(1, LONG)).isFalse();
      assertThat(ranks.failed).hasSize(1);
      assertThat(ranks.failed.element().cause()).hasMessageContaining("stayed full for 0.1");
    }
  }

  @Test
  void anAddressThatIsNotMappedIsRefusedWhenPrepared() {
    try (Ranks ranks = new Ranks(onePut())) {
      ranks.signals[1] = 0;
      assertThatThrownBy(ranks::prepare)
          .isInstanceOf(UsageException.class)
          .hasMessageContaining("rank 0 put[0] (put) raises a signal of rank 1");
    }
    try (Ranks ranks = new Ranks(onePut())) {
      ranks.buffers[1][1] = 0;
      assertThatThrownBy(ranks::prepare)
          .isInstanceOf(UsageException.class)
          .hasMessageContaining("uses the buffer staged of rank 1");
    }
  }

  @ParameterizedTest
  @EnumSource(DType.class)
  void reducesInOrderAndRoundsOnce(DType dtype) {
    int columns = 2 * Row.LENGTH + 3;
    long bytes = (long) columns * dtype.bytes();
    ScheduleBuilder b = new ScheduleBuilder("reduce", Topology.of(1, 1));
    int in = b.input("a", dtype, new long[] {6 * bytes});
    int out = b.output("c", dtype, new long[] {2 * bytes});
    ScheduleBuilder.RankBuilder r = b.rank(0);
    int pool = r.pool("pool");
    r.reduce().stream();
    for (int source = 0; source < 3; source++) {
      r.part(r.region(in, source * 2L * bytes, 2, bytes, bytes));
    }
    r.output(r.region(out, 0, 2, bytes, bytes));
    r.role("compute", true, pool);
    try (Ranks ranks = new Ranks(b.build()).prepare()) {
      long a = ranks.buffers[0][in];
      int limit = 1 << Math.min(dtype.significandBits(), 20);
      for (int i = 0; i < 6 * columns; i++) {
        TestMemory.put(dtype, a + (long) i * dtype.bytes(), (i * 37) % limit);
      }
      ranks.executable(0).launch(0, 1);
      assertThat(ranks.executable(0).await(1, LONG)).isTrue();
      int wrong = 0;
      for (int i = 0; i < 2 * columns; i++) {
        float sum = 0;
        for (int source = 0; source < 3; source++) {
          sum += ((source * 2 * columns + i) * 37) % limit;
        }
        float got = TestMemory.get(dtype, ranks.buffers[0][out] + (long) i * dtype.bytes());
        wrong += got == dtype.decode(dtype.encode(sum)) ? 0 : 1;
      }
      assertThat(wrong).isZero();
    }
  }

  @Test
  void closesTwice() {
    Ranks ranks = new Ranks(Gather.schedule(2, false)).prepare();
    ranks.executable(0).close();
    ranks.close();
    assertThat(ranks.threads).noneMatch(Thread::isAlive);
  }
}
