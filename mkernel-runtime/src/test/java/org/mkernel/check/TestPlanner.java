package org.mkernel.check;

import java.util.EnumSet;
import java.util.Map;
import java.util.Set;
import org.mkernel.api.DType;
import org.mkernel.api.schedule.Kernel;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.schedule.ScheduleBuilder;
import org.mkernel.api.schedule.SignalSpec.Scope;
import org.mkernel.api.schedule.Topology;

/**
 * Plans a ring or direct gather with tiles that read what arrives, and a last task that reads all
 * tiles; with switches that break it. Faults strike chunk 0 of rank 0 on its way to rank 1.
 */
final class TestPlanner {
  /** What a planner may get wrong. */
  enum Fault {
    DROPPED_WAIT,
    SWAPPED_WAIT,
    SWAPPED_FLAG,
    OVERLAPPING_PUT,
    SHORT_PUT,
    SHORT_SOURCE,
    CYCLIC_WAIT,
    CYCLE_IN_POOL,
    CYCLE_OVER_POOLS,
    POOL_WITHOUT_LANE,
    POOL_IN_TWO_ROLES,
    ONE_SLOT_FOR_TWO,
    NO_ENTERED,
    FLAG_RAISED_TWICE,
    COUNTER_FROM_TWO_RANKS,
    COUNTER_TOO_LOW,
    COUNTER_TOO_HIGH,
    NEVER_RAISED,
    TILE_LEFT_OUT,
    TILE_WRITTEN_TWICE,
    BEYOND_BUFFER,
    WRAPPED_64_BIT,
    SPLIT_ELEMENT,
    DONE_AS_ARRIVAL,
    NOBODY_AWAITS,
    DEVICE_SCOPE,
    WRITES_INPUT,
    WRITES_PEER,
    NEGATIVE_LAG
  }

  static final int CHUNK_ROWS = 4;
  static final int ROW_BYTES = 32;
  static final int CHUNK_BYTES = CHUNK_ROWS * ROW_BYTES;
  static final int TILE_BYTES = 8;

  private final int chunks;
  private final int columns;
  private final boolean ring;
  private final boolean partWaits;
  private final Set<Fault> faults = EnumSet.noneOf(Fault.class);
  private final ScheduleBuilder builder;
  private final int world;
  private final int a;
  private final int gathered;
  private final int spare;
  private final int c;
  private final int total;
  private final int arrived;
  private final int extra;
  private final int tiles;
  private final int gemm;

  TestPlanner(
      Topology topology,
      int chunks,
      int columns,
      boolean ring,
      boolean partWaits,
      Fault... broken) {
    this.chunks = chunks;
    this.columns = columns;
    this.ring = ring;
    this.partWaits = partWaits;
    faults.addAll(Set.of(broken));
    world = topology.size();
    builder = new ScheduleBuilder("test-gather", topology);
    a = builder.input("a", DType.F32, all((long) chunks * CHUNK_BYTES));
    gathered =
        builder.workspace(
            "gathered",
            DType.F32,
            (long) world * chunks * CHUNK_BYTES,
            faults.contains(Fault.ONE_SLOT_FOR_TWO) || faults.contains(Fault.NO_ENTERED) ? 1 : 2);
    spare = builder.workspace("spare", DType.F32, 4, 2);
    c = builder.output("c", DType.F32, all((long) world * chunks * CHUNK_ROWS * pitch()));
    total = builder.output("total", DType.F32, all(4));
    arrived = builder.flags("arrived", world * chunks, Scope.SYSTEM);
    extra =
        builder.flags(
            "extra", 4, faults.contains(Fault.DEVICE_SCOPE) ? Scope.DEVICE : Scope.SYSTEM);
    tiles = builder.counters("tiles", 1, Scope.SYSTEM);
    gemm = builder.kernel(new Kernel(Kernel.GEMM, Map.of()));
  }

  static Schedule gather(int nodes, int ranksPerNode, Fault... broken) {
    return new TestPlanner(Topology.of(nodes, ranksPerNode), 3, 4, true, false, broken).plan();
  }

  private long[] all(long bytes) {
    long[] sizes = new long[world];
    java.util.Arrays.fill(sizes, bytes);
    return sizes;
  }

  private long pitch() {
    return (long) columns * TILE_BYTES;
  }

  private boolean hit(boolean place, Fault fault) {
    return place && faults.contains(fault);
  }

  private int flag(int source, int chunk) {
    return arrived + source * chunks + chunk;
  }

  Schedule plan() {
    for (int rank = 0; rank < world; rank++) {
      plan(rank);
    }
    return builder.build();
  }

  private void plan(int rank) {
    ScheduleBuilder.RankBuilder tasks = builder.rank(rank);
    int send = tasks.pool("send");
    if (hit(rank == 0, Fault.CYCLE_IN_POOL)) {
      tasks.notifies().await(extra + 1);
      tasks.notifies().raise(0, extra + 1);
    }
    for (int step = 0; step < world - 1; step++) {
      for (int chunk = 0; chunk < chunks; chunk++) {
        if (ring) {
          put(tasks, rank, Math.floorMod(rank - step, world), chunk, (rank + 1) % world);
        } else {
          put(tasks, rank, rank, chunk, (rank + step + 1) % world);
        }
      }
    }
    if (hit(rank == 0, Fault.DONE_AS_ARRIVAL)) {
      tasks.notifies().await(extra).raise(1, extra + 1);
    }
    if (hit(rank == 0, Fault.DEVICE_SCOPE)) {
      tasks.notifies().raise(1, extra);
    }
    if (hit(rank == 1, Fault.FLAG_RAISED_TWICE)) {
      tasks.notifies().raise(1, flag(0, 0));
    }
    int gemmPool = tasks.pool("gemm");
    int adds = 0;
    if (hit(rank == 0, Fault.CYCLE_OVER_POOLS)) {
      tasks.notifies().await(extra);
    }
    for (int step = 0; step < world; step++) {
      for (int chunk = 0; chunk < chunks; chunk++) {
        adds += tiles(tasks, rank, Math.floorMod(rank - step, world), chunk);
      }
    }
    int totalPool = tasks.pool("total");
    int count =
        adds
            + (hit(rank == 1, Fault.COUNTER_TOO_HIGH) ? 1 : 0)
            - (hit(rank == 1, Fault.COUNTER_TOO_LOW) ? 1 : 0);
    long rows = (long) world * chunks * CHUNK_ROWS;
    tasks.compute(gemm).await(tiles, count, 0);
    tasks.stream().part(tasks.region(c, 0, rows, pitch(), pitch()));
    tasks.output(tasks.region(total, 0, 1, 4, 4));
    if (hit(rank == 0, Fault.CYCLE_OVER_POOLS)) {
      tasks.raise(0, extra);
    }
    tasks.role("communication", false, send);
    if (hit(rank == 1, Fault.POOL_WITHOUT_LANE)) {
      tasks.role("compute", true, gemmPool);
    } else {
      tasks.role("compute", true, gemmPool, totalPool);
    }
    if (hit(rank == 1, Fault.POOL_IN_TWO_ROLES)) {
      tasks.role("again", true, totalPool);
    }
  }

  private void put(ScheduleBuilder.RankBuilder tasks, int rank, int source, int chunk, int peer) {
    boolean struck = rank == 0 && source == 0 && chunk == 0 && peer == 1;
    int place = hit(struck, Fault.OVERLAPPING_PUT) ? 1 : chunk;
    long rows = hit(struck, Fault.SHORT_PUT) ? CHUNK_ROWS / 2 : CHUNK_ROWS;
    long sourceRows = hit(struck, Fault.SHORT_SOURCE) ? CHUNK_ROWS / 2 : rows;
    long to = ((long) source * chunks + place) * CHUNK_BYTES;
    long from = source == rank ? (long) chunk * CHUNK_BYTES : to;
    int at = source == rank ? a : gathered;
    tasks.put(
        tasks.region(at, from, sourceRows, ROW_BYTES, ROW_BYTES),
        hit(struck, Fault.BEYOND_BUFFER)
            ? tasks.regionOf(peer, gathered, 1L << 32, rows, ROW_BYTES, ROW_BYTES)
            : hit(struck, Fault.WRAPPED_64_BIT)
                ? tasks.regionOf(peer, gathered, 0, (1L << 33) + 1, ROW_BYTES, 1L << 31)
                : tasks.regionOf(
                    peer,
                    gathered,
                    to + (hit(struck, Fault.SPLIT_ELEMENT) ? 2 : 0),
                    rows,
                    ROW_BYTES,
                    ROW_BYTES),
        flag(source, hit(struck, Fault.SWAPPED_FLAG) ? 1 : chunk));
    if (hit(struck, Fault.DONE_AS_ARRIVAL)) {
      tasks.raise(0, extra);
    }
    if (hit(struck, Fault.CYCLIC_WAIT)) {
      tasks.await(extra);
    }
    if (source != rank) {
      tasks.await(flag(source, chunk));
    }
    if (hit(struck, Fault.NEGATIVE_LAG)) {
      tasks.await(builderEntered(peer), 1, -1);
    } else if (faults.contains(Fault.ONE_SLOT_FOR_TWO)) {
      // As if the buffer had the two slots of the spare one.
      tasks.awaitEntered(peer, spare);
    } else if (!faults.contains(Fault.NO_ENTERED)) {
      tasks.awaitEntered(peer, gathered);
    }
  }

  /** The first flags that a builder declares are those of {@code entered}. */
  private int builderEntered(int peer) {
    return arrived - world + peer;
  }

  private int tiles(ScheduleBuilder.RankBuilder tasks, int rank, int source, int chunk) {
    int added = 0;
    for (int column = 0; column < columns; column++) {
      boolean struck = rank == 1 && source == 0 && chunk == 0 && column == 0;
      if (hit(struck, Fault.TILE_LEFT_OUT)
          || hit(rank == 1 && source == 0 && chunk == 0, Fault.NOBODY_AWAITS)) {
        continue;
      }
      tasks.compute(gemm);
      long offset = source == rank ? (long) chunk * CHUNK_BYTES : rowsOf(source, chunk) * ROW_BYTES;
      int region =
          tasks.region(source == rank ? a : gathered, offset, CHUNK_ROWS, ROW_BYTES, ROW_BYTES);
      int signal = flag(source, hit(struck, Fault.SWAPPED_WAIT) ? 1 : chunk);
      if (hit(struck, Fault.DONE_AS_ARRIVAL)) {
        signal = extra + 1;
      } else if (hit(struck, Fault.NEVER_RAISED)) {
        signal = extra + 2;
      }
      if (source == rank || hit(struck, Fault.DROPPED_WAIT)) {
        tasks.stream().part(region);
      } else if (partWaits) {
        tasks.stream().part(region, signal, 1, 0);
      } else {
        tasks.await(signal).stream().part(region);
      }
      int place = hit(struck, Fault.TILE_WRITTEN_TWICE) ? 1 : column;
      long at = rowsOf(source, chunk) * pitch() + (long) place * TILE_BYTES;
      if (hit(struck, Fault.WRITES_INPUT)) {
        tasks.output(tasks.region(a, 0, 1, TILE_BYTES, TILE_BYTES));
      }
      tasks.output(
          tasks.regionOf(
              hit(struck, Fault.WRITES_PEER) ? 0 : rank, c, at, CHUNK_ROWS, TILE_BYTES, pitch()));
      tasks.raise(rank, tiles);
      if (hit(struck, Fault.CYCLIC_WAIT)) {
        tasks.raise(0, extra);
      }
      if (hit(
          rank == 0 && source == 0 && chunk == 0 && column == 0, Fault.COUNTER_FROM_TWO_RANKS)) {
        tasks.raise(1, tiles);
      }
      added++;
    }
    return added;
  }

  private long rowsOf(int source, int chunk) {
    return ((long) source * chunks + chunk) * CHUNK_ROWS;
  }
}
