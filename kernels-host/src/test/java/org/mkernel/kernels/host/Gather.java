package org.mkernel.kernels.host;

import java.util.Arrays;
import java.util.Map;
import org.mkernel.api.DType;
import org.mkernel.api.schedule.Kernel;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.schedule.ScheduleBuilder;
import org.mkernel.api.schedule.SignalSpec;
import org.mkernel.api.schedule.Topology;

/**
 * Every rank puts its shard, chunk by chunk, into a staging area of depth 2 on every other rank,
 * and copies what arrived into its output; a counter of the copies ends the launch.
 */
final class Gather {
  static final int CHUNKS = 3;
  static final int ROWS = 2;
  static final int COLUMNS = 5;

  /** Rows of shards have gaps, rows of the staging area have none. */
  static final long PITCH = 4L * COLUMNS + 12;

  static final long CHUNK_BYTES = 4L * ROWS * COLUMNS;
  static final long SHARD_BYTES = CHUNKS * ROWS * PITCH;

  private Gather() {}

  static Schedule schedule(int size, boolean readyFirst) {
    ScheduleBuilder b = new ScheduleBuilder("gather", Topology.of(1, size));
    long[] shard = new long[size];
    Arrays.fill(shard, SHARD_BYTES);
    long[] whole = new long[size];
    Arrays.fill(whole, (long) size * CHUNKS * CHUNK_BYTES);
    int in = b.input("a", DType.F32, shard);
    int out = b.output("c", DType.F32, whole);
    int staged = b.workspace("staged", DType.F32, whole[0], 2);
    int arrived = b.flags("arrived", size * CHUNKS, SignalSpec.Scope.SYSTEM);
    int copied = b.counters("copied", 1, SignalSpec.Scope.DEVICE);
    int finished = b.flags("finished", 1, SignalSpec.Scope.DEVICE);
    int copy = b.kernel(new Kernel(Kernel.COPY, Map.of()));
    for (int rank = 0; rank < size; rank++) {
      ScheduleBuilder.RankBuilder r = b.rank(rank);
      int puts = r.pool("put");
      for (int step = 1; step < size; step++) {
        int peer = (rank + step) % size;
        for (int chunk = 0; chunk < CHUNKS; chunk++) {
          r.put(
                  r.region(in, (long) chunk * ROWS * PITCH, ROWS, 4L * COLUMNS, PITCH),
                  r.regionOf(peer, staged, place(rank, chunk), ROWS, 4L * COLUMNS, 4L * COLUMNS),
                  arrived + rank * CHUNKS + chunk)
              .awaitEntered(peer, staged);
        }
      }
      int own = r.pool("own");
      for (int chunk = 0; chunk < CHUNKS; chunk++) {
        r.compute(copy);
        r.stream();
        r.part(r.region(in, (long) chunk * ROWS * PITCH, ROWS, 4L * COLUMNS, PITCH));
        r.output(r.region(out, place(rank, chunk), ROWS, 4L * COLUMNS, 4L * COLUMNS));
        r.raise(rank, copied);
      }
      int others = r.pool("others");
      for (int step = 1; step < size; step++) {
        int peer = (rank - step + size) % size;
        for (int chunk = 0; chunk < CHUNKS; chunk++) {
          r.compute(copy);
          if (readyFirst) {
            r.await(arrived + peer * CHUNKS + chunk);
          }
          r.stream();
          r.part(
              r.region(staged, place(peer, chunk), ROWS, 4L * COLUMNS, 4L * COLUMNS),
              arrived + peer * CHUNKS + chunk,
              1,
              0);
          r.output(r.region(out, place(peer, chunk), ROWS, 4L * COLUMNS, 4L * COLUMNS));
          r.raise(rank, copied);
        }
      }
      int end = r.pool("end");
      r.notifies().await(copied, size * CHUNKS, 0).raise(rank, finished);
      if (readyFirst) {
        r.readyFirstRole("move", false, puts);
        r.readyFirstRole("compute", true, others, own, end);
      } else {
        r.role("move", false, puts);
        r.role("compute", true, own, others, end);
      }
    }
    return b.build();
  }

  private static long place(int rank, int chunk) {
    return ((long) rank * CHUNKS + chunk) * CHUNK_BYTES;
  }

  /** Every element tells rank, epoch and place. */
  private static float value(int rank, long epoch, int index) {
    return rank * 100_000f + epoch % 500 * 100f + index;
  }

  static void fill(long shard, int rank, long epoch) {
    for (int row = 0; row < CHUNKS * ROWS; row++) {
      for (int column = 0; column < COLUMNS; column++) {
        Memory.ALL.set(
            Memory.FLOAT,
            shard + row * PITCH + 4L * column,
            value(rank, epoch, row * COLUMNS + column));
      }
    }
  }

  /** The number of elements of an output that are not those of an epoch. */
  static int wrong(long out, int size, long epoch) {
    int wrong = 0;
    int each = CHUNKS * ROWS * COLUMNS;
    for (int i = 0; i < size * each; i++) {
      if (Memory.ALL.get(Memory.FLOAT, out + 4L * i) != value(i / each, epoch, i % each)) {
        wrong++;
      }
    }
    return wrong;
  }
}
