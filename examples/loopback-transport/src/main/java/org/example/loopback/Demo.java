package org.example.loopback;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.mkernel.api.Collective;
import org.mkernel.api.Config;
import org.mkernel.api.DType;
import org.mkernel.api.MKernel;
import org.mkernel.api.Operation;
import org.mkernel.api.Rank;
import org.mkernel.api.Tensor;
import org.mkernel.api.World;

/** Gathers over the wire of this jar. */
public final class Demo {
  private static final long ROWS = 8;
  private static final long COLUMNS = 16;

  private Demo() {}

  /**
   * Runs.
   *
   * @param args none
   */
  public static void main(String[] args) {
    try (MKernel mkernel = MKernel.open(Config.defaults().option("transport", "loopback"));
        World world = mkernel.local(3, 2)) {
      world.eachLocalRank(Demo::run);
    }
  }

  private static void run(Rank rank) {
    Tensor a = rank.allocate(DType.F32, ROWS, COLUMNS);
    Tensor c = rank.allocate(DType.F32, ROWS * rank.size(), COLUMNS);
    MemorySegment in = memory(a);
    MemorySegment out = memory(c);
    try (Operation operation =
        rank.prepare(Collective.of("all-gather", Map.of("a", a, "c", c), Map.of()))) {
      if (rank.index() == 0) {
        System.out.println(operation.report());
      }
      for (int step = 1; step <= 100; step++) {
        for (long i = 0; i < ROWS * COLUMNS; i++) {
          in.setAtIndex(ValueLayout.JAVA_FLOAT, i, step * 100f + rank.index());
        }
        operation.await(operation.launch(), TimeUnit.SECONDS.toNanos(10));
        for (long i = 0; i < ROWS * COLUMNS * rank.size(); i++) {
          float value = out.getAtIndex(ValueLayout.JAVA_FLOAT, i);
          if (value != step * 100f + i / (ROWS * COLUMNS)) {
            throw new IllegalStateException("step " + step + ", element " + i + " is " + value);
          }
        }
      }
    }
    System.out.println("rank " + rank.index() + ": 100 steps are right");
  }

  private static MemorySegment memory(Tensor tensor) {
    return MemorySegment.ofAddress(tensor.address()).reinterpret(tensor.rows() * tensor.pitch());
  }
}
