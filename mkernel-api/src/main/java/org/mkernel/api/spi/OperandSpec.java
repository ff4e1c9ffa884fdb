package org.mkernel.api.spi;

import java.util.List;

/**
 * A tensor that an operator reads or writes: its whole shape and the part that each rank holds.
 *
 * @param name the operand, as {@code a}
 * @param output whether it is written
 * @param rows rows of the whole
 * @param columns columns of the whole
 * @param shards the part of each rank, by rank; equal parts mean that each holds a copy or, for an
 *     output, its own result
 */
public record OperandSpec(
    String name, boolean output, long rows, long columns, List<Shard> shards) {

  /** Copies the shards. */
  public OperandSpec {
    shards = List.copyOf(shards);
  }

  /**
   * The part of one rank.
   *
   * @param row its first row in the whole
   * @param column its first column in the whole
   * @param rows its rows, 0 for an empty part
   * @param columns its columns
   */
  public record Shard(long row, long column, long rows, long columns) {}
}
