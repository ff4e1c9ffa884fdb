package org.mkernel.collectives;

import org.mkernel.api.UsageException;
import org.mkernel.api.spi.OptionSpec;

/** The rows of every rank, cut into chunks that travel one by one. */
final class RowChunks {
  private static final int MAX_FLAGS = 1 << 20;

  private final RowSharding sharding;
  private final long length;
  private final int perRank;

  /**
   * Cuts rows.
   *
   * @param sharding the rows of each rank
   * @param length rows of a chunk; the last of a rank may have less
   * @param option what the caller can change it by
   * @throws UsageException when there are too many for flags to announce
   */
  RowChunks(RowSharding sharding, long length, OptionSpec option) {
    this.sharding = sharding;
    this.length = length;
    long chunks = Math.ceilDiv(sharding.block(), length);
    long most = MAX_FLAGS / sharding.ranks();
    if (chunks > most) {
      throw new UsageException(
          "%s of %d cuts the %d rows of a rank into %d chunks; at most %d are possible here"
              .formatted(option.name(), length, sharding.block(), chunks, most));
    }
    this.perRank = (int) chunks;
  }

  RowSharding sharding() {
    return sharding;
  }

  /** The most chunks that a rank has. */
  int perRank() {
    return perRank;
  }

  /** The number of chunks of a rank. */
  int count(int rank) {
    return (int) Math.ceilDiv(sharding.count(rank), length);
  }

  /** The first row of a chunk, of all rows. */
  long first(int rank, int chunk) {
    return sharding.first(rank) + chunk * length;
  }

  /** The rows of a chunk, at least 1. */
  long rows(int rank, int chunk) {
    return Math.min(length, sharding.count(rank) - chunk * length);
  }
}
