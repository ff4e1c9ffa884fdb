package org.mkernel.kernels.cuda;

import java.util.Map;
import org.mkernel.api.DType;
import org.mkernel.api.schedule.Kernel;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.schedule.ScheduleBuilder;
import org.mkernel.api.schedule.SignalSpec;
import org.mkernel.api.schedule.Topology;

/** Schedules of one rank that multiply: A is buffer 0, B 1, C 2. */
final class Tiles {
  private Tiles() {}

  /** C = A·B in tiles, each summed over {@code parts} pieces of k. */
  static Schedule product(DType dtype, long m, long n, long k, int parts) {
    ScheduleBuilder builder = new ScheduleBuilder("product", Topology.of(1, 1));
    long size = dtype.bytes();
    int a = builder.input("a", dtype, new long[] {m * k * size});
    int b = builder.input("b", dtype, new long[] {k * n * size});
    int c = builder.output("c", dtype, new long[] {m * n * size});
    int gemm = builder.kernel(new Kernel(Kernel.GEMM, Map.of()));
    ScheduleBuilder.RankBuilder rank = builder.rank(0);
    int pool = rank.pool("gemm");
    for (long row = 0; row < m; row += TaskEncoder.TILE_ROWS) {
      for (long column = 0; column < n; column += TaskEncoder.TILE_COLUMNS) {
        tile(rank, gemm, new int[] {a, b, c}, size, m, n, k, parts, row, column);
      }
    }
    rank.role("compute", true, pool);
    return builder.build();
  }

  private static void tile(
      ScheduleBuilder.RankBuilder rank,
      int gemm,
      int[] buffers,
      long size,
      long m,
      long n,
      long k,
      int parts,
      long row,
      long column) {
    long rows = Math.min(TaskEncoder.TILE_ROWS, m - row);
    long columns = Math.min(TaskEncoder.TILE_COLUMNS, n - column);
    long piece = Math.ceilDiv(k, parts);
    rank.compute(gemm).stream();
    for (long at = 0; at < k; at += piece) {
      long length = Math.min(piece, k - at);
      rank.part(rank.region(buffers[0], (row * k + at) * size, rows, length * size, k * size));
    }
    rank.stream();
    for (long at = 0; at < k; at += piece) {
      long length = Math.min(piece, k - at);
      rank.part(
          rank.region(buffers[1], (at * n + column) * size, length, columns * size, n * size));
    }
    rank.output(rank.region(buffers[2], (row * n + column) * size, rows, columns * size, n * size));
  }

  /**
   * A matrix multiplied by B again and again: step i reads buffer 1 + i and writes buffer 2 + i.
   */
  static Schedule chain(DType dtype, long n, int steps, boolean startRaised) {
    ScheduleBuilder builder = new ScheduleBuilder("chain", Topology.of(1, 1));
    long bytes = n * n * dtype.bytes();
    long pitch = n * dtype.bytes();
    int b = builder.input("b", dtype, new long[] {bytes});
    int[] x = new int[steps + 1];
    x[0] = builder.input("x0", dtype, new long[] {bytes});
    for (int i = 1; i < x.length; i++) {
      x[i] = builder.output("x" + i, dtype, new long[] {bytes});
    }
    int rowTiles = (int) Math.ceilDiv(n, TaskEncoder.TILE_ROWS);
    int columnTiles = (int) Math.ceilDiv(n, TaskEncoder.TILE_COLUMNS);
    int done = builder.counters("done", steps * rowTiles, SignalSpec.Scope.DEVICE);
    int start = builder.flags("start", 1, SignalSpec.Scope.DEVICE);
    int gemm = builder.kernel(new Kernel(Kernel.GEMM, Map.of()));
    ScheduleBuilder.RankBuilder rank = builder.rank(0);
    int pool = rank.pool("gemm");
    if (startRaised) {
      rank.notifies().raise(0, start);
    }
    for (int step = 0; step < steps; step++) {
      for (int i = 0; i < rowTiles; i++) {
        long row = (long) i * TaskEncoder.TILE_ROWS;
        long rows = Math.min(TaskEncoder.TILE_ROWS, n - row);
        for (long column = 0; column < n; column += TaskEncoder.TILE_COLUMNS) {
          long columns = Math.min(TaskEncoder.TILE_COLUMNS, n - column);
          int wide = dtype.bytes();
          rank.compute(gemm).await(start);
          rank.stream();
          int left = rank.region(x[step], row * pitch, rows, pitch, pitch);
          if (step == 0) {
            rank.part(left);
          } else {
            rank.part(left, done + (step - 1) * rowTiles + i, columnTiles, 0);
          }
          rank.stream().part(rank.region(b, column * wide, n, columns * wide, pitch));
          rank.output(
              rank.region(x[step + 1], row * pitch + column * wide, rows, columns * wide, pitch));
          rank.raise(0, done + step * rowTiles + i);
        }
      }
    }
    rank.role("compute", true, pool);
    return builder.build();
  }
}
