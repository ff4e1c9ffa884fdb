package org.mkernel.collectives;

import org.mkernel.api.schedule.ScheduleBuilder;

/**
 * Where rows lie: in a buffer that has all of them, or on each rank only its own.
 *
 * @param buffer its number
 * @param rowBytes bytes of a row; there are no gaps
 * @param sharding what a rank has, where it has only its own rows
 * @param whole whether every rank has room for all rows
 */
record RowBuffer(int buffer, long rowBytes, RowSharding sharding, boolean whole) {
  static RowBuffer whole(int buffer, long rowBytes, RowSharding sharding) {
    return new RowBuffer(buffer, rowBytes, sharding, true);
  }

  static RowBuffer shard(int buffer, long rowBytes, RowSharding sharding) {
    return new RowBuffer(buffer, rowBytes, sharding, false);
  }

  /** A region of the rank whose tasks are written. */
  int region(ScheduleBuilder.RankBuilder tasks, int rank, long row, long count) {
    return tasks.region(buffer, offset(rank, row), count, rowBytes, rowBytes);
  }

  /** A region of another rank. */
  int regionOf(ScheduleBuilder.RankBuilder tasks, int owner, long row, long count) {
    return tasks.regionOf(owner, buffer, offset(owner, row), count, rowBytes, rowBytes);
  }

  /** A part of the columns, in bytes of a row. */
  int tile(
      ScheduleBuilder.RankBuilder tasks,
      int rank,
      long row,
      long count,
      long firstByte,
      long bytes) {
    return tasks.region(buffer, offset(rank, row) + firstByte, count, bytes, rowBytes);
  }

  private long offset(int rank, long row) {
    return (whole ? row : row - sharding.first(rank)) * rowBytes;
  }
}
