package org.example.hello;

import static org.mkernel.api.Activation.RELU;
import static org.mkernel.api.DType.F32;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.TimeUnit;
import org.mkernel.api.Config;
import org.mkernel.api.MKernel;
import org.mkernel.api.Operation;
import org.mkernel.api.PeerLostException;
import org.mkernel.api.Rank;
import org.mkernel.api.Tensor;
import org.mkernel.api.World;
import org.mkernel.collectives.AllGatherGemm;

/** Two nodes of two ranks in this process: each gathers A and multiplies it with its own B. */
public final class Hello {
  private static final long M = 512;
  private static final long N = 128;
  private static final long K = 256;
  private static final int STEPS = 3;

  private Hello() {}

  /**
   * Runs.
   *
   * @param args none
   */
  public static void main(String[] args) {
    try (MKernel mkernel = MKernel.open(Config.fromEnvironment());
        World world = mkernel.local(2, 2)) {
      world.eachLocalRank(Hello::run);
    } catch (PeerLostException e) {
      System.err.println("rank " + e.failure().peer() + " is lost: join again without it");
      throw e;
    }
  }

  private static void run(Rank rank) {
    try (Arena arena = Arena.ofConfined()) {
      long rows = M / rank.size();
      MemorySegment memory = arena.allocate(rows * K * F32.bytes(), 64);
      for (long i = 0; i < rows * K; i++) {
        memory.setAtIndex(ValueLayout.JAVA_FLOAT, i, 1);
      }
      Tensor a = rank.borrow(memory.address(), F32, rows, K);
      Tensor b = rank.allocate(F32, K, N);
      Tensor c = rank.allocate(F32, M, N);
      MemorySegment weights = MemorySegment.ofAddress(b.address()).reinterpret(K * N * F32.bytes());
      for (long i = 0; i < K * N; i++) {
        weights.setAtIndex(ValueLayout.JAVA_FLOAT, i, rank.index() + 1);
      }
      try (Operation operation = rank.prepare(AllGatherGemm.of(a, b, c).epilogue(RELU))) {
        if (rank.index() == 0) {
          System.out.println(operation.report());
        }
        for (int step = 0; step < STEPS; step++) {
          long epoch = operation.launch();
          operation.await(epoch, TimeUnit.SECONDS.toNanos(10));
        }
      }
      MemorySegment result = MemorySegment.ofAddress(c.address()).reinterpret(M * N * F32.bytes());
      for (long i = 0; i < M * N; i++) {
        float value = result.getAtIndex(ValueLayout.JAVA_FLOAT, i);
        if (value != K * (rank.index() + 1)) {
          throw new IllegalStateException("element " + i + " is " + value);
        }
      }
      System.out.println("rank " + rank.index() + ": " + M * N + " elements are right");
    }
  }
}
