package org.mkernel.kernels.cuda;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.mkernel.api.DType;
import org.mkernel.api.UsageException;
import org.mkernel.api.schedule.Kernel;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.schedule.ScheduleBuilder;
import org.mkernel.api.schedule.SignalSpec;
import org.mkernel.api.schedule.Topology;

/** What is written for the kernel, without a GPU: addresses are only numbers here. */
final class TaskEncoderTest {
  private static final long SCRATCH = 1L << 40;

  private final Arena arena = Arena.ofConfined();

  @AfterEach
  void close() {
    arena.close();
  }

  /** One product of m × n × k, which waits for a flag and raises another. */
  private static Schedule product(long m, long n, long k, boolean transposed, boolean biased) {
    ScheduleBuilder builder = new ScheduleBuilder("product", Topology.of(1, 1));
    int a = builder.input("a", DType.BF16, new long[] {m * k * 2});
    int b = builder.input("b", DType.BF16, new long[] {n * k * 2});
    int bias = builder.input("bias", DType.BF16, new long[] {n * 2});
    int c = builder.output("c", DType.BF16, new long[] {m * n * 2});
    int flags = builder.flags("flags", 2, SignalSpec.Scope.DEVICE);
    int gemm =
        builder.kernel(
            new Kernel(
                Kernel.GEMM,
                Map.of(
                    Kernel.TRANSPOSE_B, Boolean.toString(transposed),
                    Kernel.BIAS, Boolean.toString(biased),
                    Kernel.ACTIVATION, "gelu")));
    ScheduleBuilder.RankBuilder rank = builder.rank(0);
    int pool = rank.pool("gemm");
    int left = rank.region(a, 0, m, k * 2, k * 2);
    int right =
        transposed ? rank.region(b, 0, n, k * 2, k * 2) : rank.region(b, 0, k, n * 2, n * 2);
    rank.compute(gemm).await(flags).stream().part(left).stream().part(right);
    if (biased) {
      rank.stream().part(rank.region(bias, 0, 1, n * 2, n * 2));
    }
    rank.output(rank.region(c, 0, m, n * 2, n * 2)).raise(0, flags + 1);
    rank.role("compute", true, pool);
    return builder.build();
  }

  private static TestPlan plan(Schedule schedule) {
    long[] next = {1L << 30};
    return new TestPlan(
        schedule,
        bytes -> {
          long address = next[0];
          next[0] += (bytes + 4095) / 4096 * 4096 + 4096;
          return address;
        },
        1,
        100);
  }

  private TaskEncoder.Pool encode(TestPlan plan) {
    TaskEncoder encoder = new TaskEncoder(plan, DType.BF16);
    List<int[]> items = encoder.items();
    return encoder.encode(items.getFirst(), SCRATCH, arena);
  }

  @Test
  void writesAProductWithItsWaitsRaisesAndOperands() {
    TestPlan plan = plan(product(128, 256, 128, false, false));
    TaskEncoder.Pool pool = encode(plan);
    MemorySegment task = pool.tasks();
    assertThat(pool.count()).isEqualTo(1);
    assertThat(pool.stride())
        .isEqualTo(
            TaskLayout.TASK
                + TaskLayout.REGION
                + TaskLayout.RAISE
                + TaskLayout.WAIT
                + 2 * TaskLayout.PART);
    assertThat(task.get(JAVA_BYTE, TaskLayout.TASK_KIND)).isEqualTo((byte) TaskLayout.GEMM);
    assertThat(task.get(JAVA_BYTE, TaskLayout.TASK_ACTIVATION)).isEqualTo((byte) 2);
    assertThat(task.get(JAVA_SHORT, TaskLayout.TASK_PARTS)).isEqualTo((short) 2);
    assertThat(task.get(JAVA_INT, TaskLayout.TASK_BLOCKS)).isEqualTo(2);
    long at = TaskLayout.TASK;
    assertThat(task.get(JAVA_LONG, at + TaskLayout.REGION_ADDRESS)).isEqualTo(plan.buffer(0, 3));
    assertThat(task.get(JAVA_INT, at + TaskLayout.REGION_MAP)).isNotEqualTo(TaskLayout.NO_MAP);
    at += TaskLayout.REGION;
    long flags = plan.signals(0) + 8L * plan.schedule().signals().getLast().first();
    assertThat(task.get(JAVA_LONG, at + TaskLayout.RAISE_SIGNAL)).isEqualTo(flags + 8);
    assertThat(task.get(JAVA_INT, at + TaskLayout.RAISE_KIND)).isEqualTo(TaskLayout.FLAG_DEVICE);
    at += TaskLayout.RAISE;
    assertThat(task.get(JAVA_LONG, at + TaskLayout.WAIT_SIGNAL)).isEqualTo(flags);
    at += TaskLayout.WAIT;
    assertThat(task.get(JAVA_LONG, at + TaskLayout.REGION_ADDRESS)).isEqualTo(plan.buffer(0, 0));
    at += TaskLayout.PART;
    assertThat(task.get(JAVA_LONG, at + TaskLayout.REGION_ADDRESS)).isEqualTo(plan.buffer(0, 1));
  }

  @Test
  void putsTheBiasBeforeTheOperands() {
    TestPlan plan = plan(product(128, 256, 64, true, true));
    MemorySegment task = encode(plan).tasks();
    long parts = TaskLayout.TASK + TaskLayout.REGION + TaskLayout.RAISE + TaskLayout.WAIT;
    assertThat(task.get(JAVA_BYTE, TaskLayout.TASK_BIASED)).isEqualTo((byte) 1);
    assertThat(task.get(JAVA_SHORT, TaskLayout.TASK_PARTS)).isEqualTo((short) 3);
    assertThat(task.get(JAVA_LONG, parts)).isEqualTo(plan.buffer(0, 2));
    assertThat(task.get(JAVA_LONG, parts + TaskLayout.PART)).isEqualTo(plan.buffer(0, 0));
  }

  @Test
  void packsWhatTheCopyEngineCantReadBeforeItIsUsed() {
    TestPlan plan = plan(product(7, 5, 3, false, false));
    TaskEncoder encoder = new TaskEncoder(plan, DType.BF16);
    List<int[]> items = encoder.items();
    assertThat(items.getFirst()).containsExactly(~0, ~1, 0);
    TaskEncoder.Pool pool = encoder.encode(items.getFirst(), SCRATCH, arena);
    MemorySegment pack = pool.tasks();
    assertThat(pack.get(JAVA_BYTE, TaskLayout.TASK_KIND)).isEqualTo((byte) TaskLayout.COPY);
    assertThat(pack.get(JAVA_LONG, TaskLayout.TASK + TaskLayout.REGION_PITCH) % 128).isZero();
    long raised =
        pack.get(JAVA_LONG, (long) TaskLayout.TASK + TaskLayout.REGION + TaskLayout.RAISE_SIGNAL);
    assertThat(raised).isEqualTo(SCRATCH);
    MemorySegment task = pool.tasks().asSlice(2L * pool.stride());
    long output = TaskLayout.TASK;
    assertThat(task.get(JAVA_INT, output + TaskLayout.REGION_MAP)).isEqualTo(TaskLayout.NO_MAP);
    long a = output + TaskLayout.REGION + TaskLayout.RAISE + TaskLayout.WAIT;
    assertThat(task.get(JAVA_LONG, a + TaskLayout.REGION + TaskLayout.WAIT_SIGNAL))
        .isEqualTo(raised);
  }

  @Test
  void describesEachMatrixOnceAndEndsItWhereItIsRagged() {
    TaskEncoder whole = new TaskEncoder(plan(product(128, 256, 128, false, false)), DType.BF16);
    whole.encode(whole.items().getFirst(), SCRATCH, arena);
    assertThat(whole.maps().count()).isEqualTo(3);
    TensorMaps maps = new TensorMaps(DType.BF16);
    TensorMaps.Matrix matrix = new TensorMaps.Matrix(4096, 8192, 2, 256, 128, 64, 64);
    assertThat(maps.index(matrix)).isZero();
    assertThat(maps.index(matrix)).isZero();
    assertThat(maps.index(new TensorMaps.Matrix(4096, 8192, 2, 256, 100, 64, 64))).isEqualTo(2);
    assertThat(maps.count()).isEqualTo(4);
  }

  @Test
  void refusesATileThatIsTooLargeAndSaysWhichIsNot() {
    TestPlan plan = plan(product(129, 256, 64, false, false));
    assertThatThrownBy(() -> encode(plan))
        .isInstanceOf(UsageException.class)
        .hasMessageContaining("129 x 256")
        .extracting(e -> ((UsageException) e).failure().remedy().orElseThrow())
        .asString()
        .contains("128 x 256", "tile-rows");
  }
}
