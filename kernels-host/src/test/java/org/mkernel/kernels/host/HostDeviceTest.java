package org.mkernel.kernels.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.mkernel.api.DeviceException;
import org.mkernel.api.UsageException;
import org.mkernel.api.spi.Device;

class HostDeviceTest {
  private final Device device = new HostDeviceProvider().open(0, Thread::new);

  @Test
  void isAvailableHere() {
    assertThat(new HostDeviceProvider().availability().describe()).contains("processors, OpenBLAS");
  }

  @Test
  void memoryIsZeroedAndAligned() {
    for (long bytes : new long[] {1, 7, 4096, 1 << 20}) {
      for (long alignment : new long[] {1, 64, 4096, 1 << 16}) {
        try (Device.Memory memory = device.allocate(bytes, alignment)) {
          assertThat(memory.address() % alignment).isZero();
          assertThat(memory.bytes()).isEqualTo(bytes);
          long sum = 0;
          for (long i = 0; i < bytes; i++) {
            sum |= Memory.ALL.get(ValueLayout.JAVA_BYTE, memory.address() + i);
            Memory.ALL.set(ValueLayout.JAVA_BYTE, memory.address() + i, (byte) -1);
          }
          assertThat(sum).isZero();
        }
      }
    }
  }

  @Test
  void nothingHasNoAddress() {
    Device.Memory memory = device.allocate(0, 64);
    assertThat(memory.address()).isZero();
    memory.close();
    memory.close();
  }

  @Test
  @Tag("slow")
  void sizesBeyondFourGibibytesAreFine() {
    long bytes = (4L << 30) + 4096;
    try (Device.Memory memory = device.allocate(bytes, 4096)) {
      long last = memory.address() + bytes - 8;
      assertThat(Memory.acquire(last)).isZero();
      Memory.release(last, 7);
      assertThat(Memory.acquire(last)).isEqualTo(7);
    }
  }

  @Test
  void bytesGoToTheDeviceAndComeBack() {
    byte[] bytes = {1, 2, 3, 4, 5, 6, 7, 8};
    byte[] back = new byte[3];
    try (Device.Memory memory = device.allocate(8, 8)) {
      device.write(MemorySegment.ofArray(bytes), memory.address());
      device.read(memory.address() + 4, MemorySegment.ofArray(back));
    }
    assertThat(back).containsExactly(5, 6, 7);
  }

  @Test
  void aCopyQueueStoresAfterItCopied() {
    try (Device.Memory from = device.allocate(4096, 8);
        Device.Pinned to = device.pinned(4104, 8);
        Device.CopyQueue queue = device.copyQueue()) {
      Memory.release(from.address() + 4088, 5);
      queue.copy(from.address(), to.address(), 4096);
      queue.store(to.address() + 4096, 7);
      assertThat(queue.isIdle()).isTrue();
      assertThat(Memory.acquire(to.hostAddress() + 4096)).isEqualTo(7);
      assertThat(Memory.acquire(to.hostAddress() + 4088)).isEqualTo(5);
    }
  }

  @Test
  void memoryOfAnotherRankIsMappedAndStaysItsOwners() {
    try (Device.Memory memory = device.allocate(64, 8)) {
      byte[] handle = device.export(memory.address() + 16, 48);
      try (Device.Memory mapped = device.map(handle)) {
        assertThat(mapped.address()).isEqualTo(memory.address() + 16);
        assertThat(mapped.bytes()).isEqualTo(48);
      }
      assertThat(Memory.acquire(memory.address() + 16)).isZero();
    }
  }

  @Test
  void tooMuchIsRefusedWithTheNumbers() {
    long bytes = AvailableMemory.bytes() + (1L << 40);
    assertThatThrownBy(() -> device.allocate(bytes, 64))
        .isInstanceOf(DeviceException.class)
        .hasMessageMatching(bytes + " bytes of host memory are needed; [0-9]+ are available");
  }

  @Test
  void badRequestsAreRefused() {
    assertThatThrownBy(() -> device.allocate(-1, 64)).isInstanceOf(UsageException.class);
    assertThatThrownBy(() -> device.allocate(64, 0)).isInstanceOf(UsageException.class);
    assertThatThrownBy(() -> device.allocate(64, 48)).isInstanceOf(UsageException.class);
  }
}
