package org.mkernel.kernels.host;

import static java.nio.file.StandardOpenOption.CREATE_NEW;
import static java.nio.file.StandardOpenOption.READ;
import static java.nio.file.StandardOpenOption.SPARSE;
import static java.nio.file.StandardOpenOption.WRITE;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.mkernel.api.DType;
import org.mkernel.api.schedule.Kernel;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.schedule.ScheduleBuilder;
import org.mkernel.api.schedule.SignalSpec;
import org.mkernel.api.schedule.Topology;

/** Regions beyond 2 and 4 GiB, in files with holes, of which little is touched. */
final class HugeBuffersTest {
  private static final long GIB = 1L << 30;
  private static final long BYTES = 6 * GIB;
  private static final long ROW = 64;

  /** Where regions start, and their pitches: on both sides of 2 and 4 GiB, behind, and across. */
  private static final long[][] PLACES = {
    {2 * GIB - ROW, ROW}, {4 * GIB - ROW, ROW}, {5 * GIB + ROW, ROW}, {GIB, 4 * GIB + 8 * ROW}
  };

  private static final int SQUARE = 4;
  private static final long LEFT = 4 * GIB + 4096;
  private static final long RIGHT = 5 * GIB + 4096;
  private static final long PRODUCT = 3 * GIB + 4096;

  @TempDir Path folder;

  /** Rank 0 puts; rank 1 adds its own to what arrives, and multiplies two of its own. */
  private static Schedule schedule() {
    ScheduleBuilder b = new ScheduleBuilder("huge", Topology.of(1, 2));
    int in = b.input("a", DType.F32, new long[] {BYTES, BYTES});
    int out = b.output("c", DType.F32, new long[] {BYTES, BYTES});
    int staged = b.workspace("staged", DType.F32, BYTES, 1);
    int arrived = b.flags("arrived", PLACES.length, SignalSpec.Scope.SYSTEM);
    int gemm = b.kernel(new Kernel(Kernel.GEMM, Map.of()));
    ScheduleBuilder.RankBuilder sender = b.rank(0);
    int puts = sender.pool("put");
    for (int i = 0; i < PLACES.length; i++) {
      sender.put(
          sender.region(in, PLACES[i][0], 2, ROW, PLACES[i][1]),
          sender.regionOf(1, staged, PLACES[i][0], 2, ROW, PLACES[i][1]),
          arrived + i);
      sender.awaitEntered(1, staged);
    }
    sender.role("put", false, puts);
    ScheduleBuilder.RankBuilder r = b.rank(1);
    int sums = r.pool("sums");
    for (int i = 0; i < PLACES.length; i++) {
      r.reduce().stream()
          .part(r.region(in, PLACES[i][0], 2, ROW, PLACES[i][1]))
          .part(r.region(staged, PLACES[i][0], 2, ROW, PLACES[i][1]))
          .await(arrived + i)
          .output(r.region(out, PLACES[i][0], 2, ROW, PLACES[i][1]));
    }
    r.compute(gemm);
    r.stream().part(square(r, in, LEFT));
    r.stream().part(square(r, in, RIGHT));
    r.output(square(r, out, PRODUCT));
    r.role("compute", true, sums);
    return b.build();
  }

  private static int square(ScheduleBuilder.RankBuilder r, int buffer, long offset) {
    return r.region(buffer, offset, SQUARE, 4L * SQUARE, 4L * SQUARE);
  }

  private MemorySegment sparse(int number, long bytes, Arena arena) {
    Path file = folder.resolve("buffer" + number);
    try (FileChannel channel = FileChannel.open(file, CREATE_NEW, SPARSE, READ, WRITE)) {
      return channel.map(FileChannel.MapMode.READ_WRITE, 0, bytes, arena);
    } catch (IOException e) {
      throw new IllegalStateException(file + " can't be mapped", e);
    }
  }

  @Test
  void putsSumsAndProductsReachBeyondFourGibibytes() {
    try (Arena arena = Arena.ofShared();
        Ranks ranks = new Ranks(schedule())) {
      MemorySegment[][] memory = new MemorySegment[2][3];
      for (int rank = 0; rank < 2; rank++) {
        for (int buffer = 0; buffer < 3; buffer++) {
          memory[rank][buffer] = sparse(rank * 3 + buffer, BYTES, arena);
          ranks.buffers[rank][buffer] = memory[rank][buffer].address();
        }
        fill(memory[rank][0], rank);
      }
      ranks.prepare();
      for (int rank = 0; rank < 2; rank++) {
        ranks.executable(rank).launch(0, 1);
      }
      for (int rank = 0; rank < 2; rank++) {
        assertThat(ranks.executable(rank).await(1, TimeUnit.SECONDS.toNanos(60))).isTrue();
      }
      assertThat(ranks.failed).isEmpty();
      MemorySegment c = memory[1][1];
      for (int place = 0; place < PLACES.length; place++) {
        for (int i = 0; i < 2 * ROW / 4; i++) {
          assertThat(c.get(ValueLayout.JAVA_FLOAT, at(place, i)))
              .isEqualTo(value(0, place, i) + value(1, place, i));
        }
      }
      for (int i = 0; i < SQUARE * SQUARE; i++) {
        // The right one is twice the identity.
        assertThat(c.get(ValueLayout.JAVA_FLOAT, PRODUCT + 4L * i)).isEqualTo(2f * (i + 1));
      }
    }
  }

  private static void fill(MemorySegment a, int rank) {
    for (int place = 0; place < PLACES.length; place++) {
      for (int i = 0; i < 2 * ROW / 4; i++) {
        a.set(ValueLayout.JAVA_FLOAT, at(place, i), value(rank, place, i));
      }
    }
    for (int i = 0; i < SQUARE * SQUARE; i++) {
      a.set(ValueLayout.JAVA_FLOAT, LEFT + 4L * i, i + 1);
      a.set(ValueLayout.JAVA_FLOAT, RIGHT + 4L * i, i % (SQUARE + 1) == 0 ? 2 : 0);
    }
  }

  private static long at(int place, int i) {
    long row = i / (ROW / 4);
    return PLACES[place][0] + row * PLACES[place][1] + i % (ROW / 4) * 4;
  }

  private static float value(int rank, int place, int i) {
    return rank * 10_000 + place * 100 + i;
  }
}
