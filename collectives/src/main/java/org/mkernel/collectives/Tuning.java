package org.mkernel.collectives;

import java.util.List;
import org.mkernel.api.spi.OptionSpec;
import org.mkernel.api.spi.Problem;

/** The options that change how an operation is cut, and never its result. */
final class Tuning {
  static final OptionSpec CHUNK_ROWS =
      new OptionSpec(
          "chunk-rows", "rows that travel together", "a quarter of a shard, 64 to 512", List.of());
  static final OptionSpec TILE_ROWS =
      new OptionSpec("tile-rows", "rows of a tile, at most a chunk's", "256", List.of());
  static final OptionSpec TILE_COLUMNS =
      new OptionSpec("tile-columns", "columns of a tile", "1024", List.of());

  private static final long LARGE = 1L << 40;

  private Tuning() {}

  static long chunkRows(Problem problem, long shardRows) {
    long wanted = Math.clamp((shardRows + 3) / 4, 64, 512);
    return Math.min(shardRows, problem.option(CHUNK_ROWS.name(), wanted));
  }

  static long tileRows(Problem problem) {
    return Math.min(LARGE, problem.option(TILE_ROWS.name(), 256));
  }

  static long tileColumns(Problem problem) {
    return Math.min(LARGE, problem.option(TILE_COLUMNS.name(), 1024));
  }
}
