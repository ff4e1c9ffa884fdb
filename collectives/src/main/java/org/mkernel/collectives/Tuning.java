package org.mkernel.collectives;

import java.util.List;
import org.mkernel.api.spi.OptionSpec;
import org.mkernel.api.spi.Problem;

/** The options that change how an operation is cut, and never its result. */
final class Tuning {
  static final OptionSpec CHUNK_ROWS =
      new OptionSpec(
          "chunk-rows",
          "rows that travel together",
          "a quarter to an eighth of a rank's, at least 64",
          List.of());
  static final OptionSpec CHUNK_ELEMENTS =
      new OptionSpec(
          "chunk-elements",
          "elements that travel together",
          "an eighth of a rank's, at least 16384",
          List.of());
  static final OptionSpec TILE_ROWS =
      new OptionSpec(
          "tile-rows",
          "rows of a tile, which may span chunks",
          "what suits the device, or those of a chunk, in equal parts of at most 256",
          List.of());
  static final OptionSpec TILE_COLUMNS =
      new OptionSpec(
          "tile-columns", "columns of a tile", "n, in equal parts of at most 1024", List.of());

  /** Lengths are rounded up to this: panels of the usual kernels have no ragged rest then. */
  private static final long GRAIN = 64;

  private static final long MIN_CHUNK_ELEMENTS = 16384;
  private static final long MAX_DEFAULT_TILE_ROWS = 256;
  private static final long MAX_DEFAULT_TILE_COLUMNS = 1024;

  private Tuning() {}

  /** Four chunks, to start early; up to eight before they grow beyond a tile. */
  static long chunkRows(Problem problem, long shardRows) {
    long quarter = Math.min(roundUp(Math.ceilDiv(shardRows, 4)), MAX_DEFAULT_TILE_ROWS);
    long wanted = Math.max(quarter, roundUp(Math.ceilDiv(shardRows, 8)));
    return Math.min(shardRows, problem.option(CHUNK_ROWS.name(), wanted));
  }

  /** Eight chunks, unless they are so small that their announcement costs more than their bytes. */
  static long chunkElements(Problem problem, long shardElements) {
    long wanted = Math.max(roundUp(Math.ceilDiv(shardElements, 8)), MIN_CHUNK_ELEMENTS);
    return Math.min(shardElements, problem.option(CHUNK_ELEMENTS.name(), wanted));
  }

  static long tileRows(Problem problem, long chunkRows) {
    long wanted = Math.min(chunkRows, equalParts(chunkRows, MAX_DEFAULT_TILE_ROWS));
    return Math.min(problem.size("m"), problem.option(TILE_ROWS.name(), wanted));
  }

  static long tileColumns(Problem problem, long columns) {
    long wanted = equalParts(columns, MAX_DEFAULT_TILE_COLUMNS);
    return Math.min(columns, problem.option(TILE_COLUMNS.name(), wanted));
  }

  private static long equalParts(long length, long most) {
    return roundUp(Math.ceilDiv(length, Math.ceilDiv(length, most)));
  }

  private static long roundUp(long length) {
    return Math.ceilDiv(length, GRAIN) * GRAIN;
  }
}
