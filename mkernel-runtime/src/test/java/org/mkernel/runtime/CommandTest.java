package org.mkernel.runtime;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.mkernel.api.UsageException;

final class CommandTest {
  @ParameterizedTest
  @CsvSource({
    "0, 0, 0",
    "16777215, 0, 0",
    "0, 8388607, 0",
    "0, 0, 65535",
    "16777215, 8388607, 65535",
    "11184810, 2796202, 43690",
    "1, 1, 1"
  })
  void fieldsComeBack(int transfer, int extent, int epoch) {
    long command = Command.encode(transfer, extent, epoch);
    assertThat(Command.transfer(command)).isEqualTo(transfer);
    assertThat(Command.extent(command)).isEqualTo(extent);
    assertThat(Command.epochTag(command)).isEqualTo(epoch);
    assertThat(command & Command.LAP).isZero();
    long full = command | Command.LAP;
    assertThat(Command.transfer(full)).isEqualTo(transfer);
    assertThat(Command.extent(full)).isEqualTo(extent);
    assertThat(Command.epochTag(full)).isEqualTo(epoch);
  }

  /** Device code builds the same bits. */
  @Test
  void bitsAreWhereDevicesPutThem() {
    assertThat(Command.encode(0xabcdef, 0x765432, 0x9876)).isEqualTo(0x4c3b_7654_32ab_cdefL);
    assertThat(Command.encode(1, 0, 0)).isEqualTo(1L);
    assertThat(Command.encode(0, 1, 0)).isEqualTo(1L << 24);
    assertThat(Command.encode(0, 0, 1)).isEqualTo(1L << 47);
    assertThat(Command.LAP).isEqualTo(1L << 63);
  }

  @Test
  void lowBitsOfEpochTravel() {
    assertThat(Command.epochTag(Command.encode(0, 0, 65536))).isZero();
    assertThat(Command.epochTag(Command.encode(0, 0, (1L << 40) + 7))).isEqualTo(7);
    assertThat(Command.epochTag(Command.encode(0, 0, Long.MAX_VALUE))).isEqualTo(65535);
  }

  @ParameterizedTest
  @CsvSource({
    "-1, 0, 1, transfer -1; allowed are 0 to 16777215",
    "16777216, 0, 1, transfer 16777216; allowed are 0 to 16777215",
    "2147483647, 0, 1, transfer 2147483647; allowed are 0 to 16777215",
    "0, -1, 1, extent -1; allowed are 0 to 8388607",
    "0, 8388608, 1, extent 8388608; allowed are 0 to 8388607",
    "0, 0, -1, epoch -1; allowed are 0 to 9223372036854775807"
  })
  void fieldsOutOfRangeAreRefused(int transfer, int extent, long epoch, String message) {
    assertThatThrownBy(() -> Command.encode(transfer, extent, epoch))
        .isInstanceOf(UsageException.class)
        .hasMessage(message);
  }
}
