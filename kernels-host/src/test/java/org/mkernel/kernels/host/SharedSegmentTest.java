package org.mkernel.kernels.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.OptionalInt;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.mkernel.api.DeviceException;
import org.mkernel.api.MismatchException;
import org.mkernel.api.UnavailableException;
import org.mkernel.api.spi.Device;

final class SharedSegmentTest {
  private static final long PID = ProcessHandle.current().pid();

  private static long openSegments() throws IOException {
    try (Stream<Path> files = Files.list(Path.of("/proc/self/fd"))) {
      return files
          .filter(file -> {
            try {
              return Files.readSymbolicLink(file).toString().startsWith("/memfd:mkernel-");
            } catch (IOException e) {
              return false;
            }
          })
          .count();
    }
  }

  @Test
  void aSecondMappingShowsTheSameBytes() throws IOException {
    long before = openSegments();
    try (SharedSegment segment = SharedSegment.allocate(10_000);
        Arena arena = Arena.ofShared()) {
      long other =
          SharedSegment.mapOf(PID, segment.descriptor(), segment.name(), segment.bytes(), arena);
      assertThat(other).isNotEqualTo(segment.address());
      for (long at = 0; at < 10_000; at++) {
        assertThat(Memory.ALL.get(ValueLayout.JAVA_BYTE, other + at)).isZero();
      }
      Memory.release(segment.address() + 4096, 77);
      assertThat(Memory.acquire(other + 4096)).isEqualTo(77);
      assertThat(openSegments()).isEqualTo(before + 1);
    }
    assertThat(openSegments()).isEqualTo(before);
  }

  @Test
  void sizeAndNameAreComparedBeforeUse() {
    try (SharedSegment segment = SharedSegment.allocate(4096);
        Arena arena = Arena.ofShared()) {
      assertThatThrownBy(
              () -> SharedSegment.mapOf(PID, segment.descriptor(), segment.name(), 8192, arena))
          .isInstanceOf(MismatchException.class)
          .hasMessageContaining("has 4096 bytes; 8192 were announced");
      assertThatThrownBy(() -> SharedSegment.mapOf(PID, segment.descriptor(), "other", 4096, arena))
          .isInstanceOf(MismatchException.class)
          .hasMessageContaining("other was announced");
      assertThatThrownBy(() -> SharedSegment.mapOf(PID, 1_000_000, "other", 4096, arena))
          .isInstanceOf(UnavailableException.class);
    }
  }

  @Test
  void nobodyCanCutItShort() throws IOException {
    try (SharedSegment segment = SharedSegment.allocate(8192);
        var file =
            java.nio.channels.FileChannel.open(
                Path.of("/proc/self/fd/" + segment.descriptor()),
                java.nio.file.StandardOpenOption.WRITE)) {
      assertThatThrownBy(() -> file.truncate(100)).isInstanceOf(IOException.class);
    }
  }

  @Test
  void moreThanThereIsIsRefusedWithTheNumbers() {
    assertThatThrownBy(() -> new HostDevice(Thread::new).allocateShared(1L << 50, 256))
        .isInstanceOf(DeviceException.class)
        .hasMessageContaining(Long.toString(1L << 50));
  }

  @Test
  void handlesNameTheSegmentAndThePlace() {
    try (Device.Memory memory = new HostDevice(Thread::new).allocateShared(8192, 256)) {
      byte[] bytes = MemoryHandle.of(memory.address() + 512, 1024).encode();
      MemoryHandle handle = MemoryHandle.decode(OptionalInt.of(1), bytes);
      assertThat(handle).isEqualTo(MemoryHandle.of(memory.address() + 512, 1024));
      assertThat(handle.isShared()).isTrue();
      assertThat(handle.offset()).isEqualTo(512);
      assertThat(MemoryHandle.of(memory.address() + 512, 8192).isShared()).isFalse();
    }
  }

  @Test
  void handlesOutsideTheirSegmentAreRefused() {
    try (Device.Memory memory = new HostDevice(Thread::new).allocateShared(8192, 256)) {
      MemoryHandle good = MemoryHandle.of(memory.address(), 8192);
      for (long[] bad : new long[][] {{8193, 0}, {8192, 1}, {-1, 0}, {1, -1}, {1, 8192}}) {
        byte[] bytes =
            new MemoryHandle(
                    good.process(),
                    good.nonce(),
                    good.address(),
                    bad[0],
                    good.descriptor(),
                    good.segment(),
                    good.segmentBytes(),
                    bad[1])
                .encode();
        assertThatThrownBy(() -> MemoryHandle.decode(OptionalInt.of(3), bytes))
            .isInstanceOf(MismatchException.class)
            .hasMessageContaining("rank 3 announces");
      }
    }
  }
}
