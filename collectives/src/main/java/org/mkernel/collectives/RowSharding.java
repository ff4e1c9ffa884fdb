package org.mkernel.collectives;

import org.mkernel.api.schedule.Topology;

/** Rows dealt out in equal blocks of ⌈m / world⌉; the last ranks have less, or none. */
record RowSharding(long rows, int ranks) {
  static RowSharding of(long rows, Topology topology) {
    return new RowSharding(rows, topology.size());
  }

  long block() {
    return Math.ceilDiv(rows, ranks);
  }

  long first(int rank) {
    return Math.min(rows, rank * block());
  }

  long count(int rank) {
    return Math.min(rows, (rank + 1) * block()) - first(rank);
  }

  /** The rank that holds a row. */
  int owner(long row) {
    return (int) (row / block());
  }
}
