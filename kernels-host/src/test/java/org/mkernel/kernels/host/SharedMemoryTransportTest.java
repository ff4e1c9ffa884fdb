package org.mkernel.kernels.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.mkernel.api.MismatchException;
import org.mkernel.api.UnavailableException;
import org.mkernel.api.schedule.Topology;
import org.mkernel.api.spi.MappedPort;
import org.mkernel.api.spi.TransportProvider;

class SharedMemoryTransportTest {
  private final MappedPort port =
      (MappedPort)
          new SharedMemoryTransport()
              .open(
                  new TransportProvider.Context(
                      0, Topology.of(1, 2), List::of, Map.of(), Thread::new));

  @Test
  void reachesANode() {
    SharedMemoryTransport transport = new SharedMemoryTransport();
    assertThat(transport.name()).isEqualTo("shared-memory");
    assertThat(transport.reach()).isEqualTo(TransportProvider.Reach.NODE);
    assertThat(transport.availability().isAvailable()).isTrue();
  }

  @Test
  void mapsWhatThisProcessExported() {
    assertThat(port.map(1, port.export(0x1234_5678_9abcL, 99))).isEqualTo(0x1234_5678_9abcL);
  }

  @Test
  void refusesMemoryOfAnotherProcessAlsoIfItHasTheSameNumber() {
    for (int at : new int[] {15, 23}) {
      byte[] handle = port.export(4096, 99);
      handle[at] ^= 1;
      assertThatThrownBy(() -> port.map(1, handle))
          .isInstanceOf(UnavailableException.class)
          .hasMessageContaining("rank 1 is in process");
    }
  }

  @Test
  void refusesWhatIsNoHandle() {
    byte[] handle = port.export(4096, 99);
    for (byte[] bad :
        List.of(new byte[0], new byte[handle.length], Arrays.copyOf(handle, handle.length - 1))) {
      assertThatThrownBy(() -> port.map(1, bad))
          .isInstanceOf(MismatchException.class)
          .hasMessageContaining("rank 1");
    }
  }
}
