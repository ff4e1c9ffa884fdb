package org.mkernel.kernels.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Arrays;
import org.junit.jupiter.api.Test;

final class CubinEntryTest {
  private final CubinEntry entry = new CubinEntry("what ptxas said: ä", new byte[] {1, 2, 3});

  @Test
  void isReadAsItWasWritten() throws CubinEntry.CorruptException {
    CubinEntry read = CubinEntry.decode(entry.encode());
    assertThat(read.log()).isEqualTo(entry.log());
    assertThat(read.cubin()).isEqualTo(entry.cubin());
  }

  @Test
  void noBitCanChangeUnseen() {
    byte[] file = entry.encode();
    for (int bit = 0; bit < file.length * 8; bit++) {
      byte[] bad = file.clone();
      bad[bit / 8] ^= (byte) (1 << bit % 8);
      assertThatThrownBy(() -> CubinEntry.decode(bad))
          .as("bit %d", bit)
          .isInstanceOf(CubinEntry.CorruptException.class);
    }
  }

  @Test
  void noFileOfAnotherLengthIsRead() {
    byte[] file = entry.encode();
    for (int length = 0; length <= file.length + 2; length++) {
      if (length != file.length) {
        byte[] bad = Arrays.copyOf(file, length);
        assertThatThrownBy(() -> CubinEntry.decode(bad))
            .as("%d bytes", length)
            .isInstanceOf(CubinEntry.CorruptException.class);
      }
    }
  }

  @Test
  void usageIsReadFromWhatTheAssemblerSays() {
    String log =
        """
        ptxas info    : 100 bytes gmem
        ptxas info    : Compiling entry function 'one' for 'sm_90a'
        ptxas info    : Function properties for one
        ptxas         .     16 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads
        ptxas info    : Used 168 registers, used 16 barriers, 1024 bytes smem
        ptxas info    : Compile time = 1538.376 ms
        ptxas info    : Function properties for helper
        ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
        ptxas info    : Compiling entry function 'two' for 'sm_90a'
        ptxas info    : Function properties for two
        ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
        ptxas info    : Used 8 registers
        """;
    assertThat(new CubinEntry(log, new byte[0]).usage())
        .containsExactly(
            new KernelUsage("one", true, 168, 1024, 16, 8, 4),
            new KernelUsage("helper", false, 0, 0, 0, 0, 0),
            new KernelUsage("two", true, 8, 0, 0, 0, 0));
  }
}
