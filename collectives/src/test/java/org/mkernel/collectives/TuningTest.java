package org.mkernel.collectives;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.mkernel.api.DType;
import org.mkernel.api.UsageException;
import org.mkernel.api.schedule.Topology;
import org.mkernel.api.spi.Problem;

final class TuningTest {
  private static final AllGatherGemmProvider GEMM = new AllGatherGemmProvider();

  private static Problem problem(long m, long n, Map<String, String> options) {
    return new Problem(
        AllGatherGemm.NAME,
        Topology.of(2, 2),
        DType.F32,
        Map.of("m", m, "n", n, "k", 16L),
        options);
  }

  @ParameterizedTest
  @CsvSource({
    "1, 1",
    "63, 63",
    "64, 64",
    "256, 64",
    "257, 128",
    "512, 128",
    "1024, 256",
    "2048, 256",
    "2049, 320",
    "1000000, 125056"
  })
  void chunksAreFourToEight(long shard, long chunk) {
    assertThat(Tuning.chunkRows(problem(shard * 4, 1, Map.of()), shard)).isEqualTo(chunk);
  }

  @ParameterizedTest
  @CsvSource({"1, 1", "64, 64", "256, 256", "320, 192", "512, 256"})
  void tilesCutChunksEvenly(long chunk, long tile) {
    assertThat(Tuning.tileRows(problem(chunk, 1, Map.of()), chunk)).isEqualTo(tile);
  }

  @ParameterizedTest
  @CsvSource({"1, 1", "1000, 1000", "1024, 1024", "1025, 576", "4096, 1024"})
  void tilesCutColumnsEvenly(long n, long tile) {
    assertThat(Tuning.tileColumns(problem(1, n, Map.of()), n)).isEqualTo(tile);
  }

  @Test
  void optionsWinWithinTheShape() {
    Problem small =
        problem(
            1000,
            100,
            Map.of("chunk-rows", "7", "tile-rows", "9223372036854775807", "tile-columns", "33"));
    assertThat(Tuning.chunkRows(small, 250)).isEqualTo(7);
    assertThat(Tuning.tileRows(small, 7)).isEqualTo(1000);
    assertThat(Tuning.tileColumns(small, 100)).isEqualTo(33);
  }

  @ParameterizedTest
  @ValueSource(strings = {"0", "-1", "", "x", "1.5", "9223372036854775808"})
  void badNumbersAreNamed(String value) {
    for (String name : new String[] {"chunk-rows", "tile-rows", "tile-columns"}) {
      Problem bad = problem(100, 100, Map.of(name, value));
      assertThatThrownBy(() -> GEMM.plan(bad))
          .isInstanceOf(UsageException.class)
          .hasMessage("option %s is \"%s\"; a whole number of at least 1 is needed", name, value);
    }
  }

  @ParameterizedTest
  @CsvSource({
    "tile-depth, 3, has no option \"tile-depth\"; allowed are [transpose-b",
    "transpose-b, yes, option transpose-b is \"yes\"; allowed are",
    "bias, 1, option bias is \"1\"; allowed are",
    "epilogue, tanh, option epilogue is \"tanh\"; allowed are"
  })
  void otherOptionsAreRefused(String name, String value, String says) {
    Problem bad = problem(100, 100, Map.of(name, value));
    assertThatThrownBy(() -> GEMM.operands(bad))
        .isInstanceOf(UsageException.class)
        .hasMessageContaining(says);
  }

  @Test
  void tooManyChunksAreRefusedAtOnce() {
    assertThatThrownBy(() -> GEMM.plan(problem(1L << 40, 1, Map.of("tile-rows", "1000"))))
        .isInstanceOf(UsageException.class)
        .hasMessageContaining("raise tile-rows, tile-columns or chunk-rows");
    Problem gather =
        new Problem(
            AllGather.NAME,
            Topology.of(2, 2),
            DType.F32,
            Map.of("m", 1L << 40, "k", 1L),
            Map.of("chunk-rows", "1"));
    assertThatThrownBy(() -> new AllGatherProvider().plan(gather))
        .isInstanceOf(UsageException.class)
        .hasMessage(
            "chunk-rows of 1 cuts the 274877906944 rows of a rank into 274877906944 chunks; at most"
                + " 262144 are possible here");
  }

  @ParameterizedTest
  @CsvSource({
    "9223372036854775807, 1, 1",
    "1, 9223372036854775807, 1",
    "1, 1, 9223372036854775807",
    "4611686018427387904, 4, 4"
  })
  void shapesBeyondSixtyFourBitsAreRefused(long m, long n, long k) {
    Problem huge =
        new Problem(
            AllGatherGemm.NAME,
            Topology.of(2, 2),
            DType.F32,
            Map.of("m", m, "n", n, "k", k),
            Map.of());
    assertThatThrownBy(() -> GEMM.plan(huge))
        .isInstanceOf(UsageException.class)
        .hasMessageContaining("2^62");
  }

  @ParameterizedTest
  @CsvSource({"1, 1", "16384, 16384", "100000, 16384", "1000000, 125056"})
  void chunksOfElementsAreAtMostEight(long shard, long chunk) {
    assertThat(Tuning.chunkElements(problem(1, 1, Map.of()), shard)).isEqualTo(chunk);
  }

  @ParameterizedTest
  @ValueSource(strings = {"-1", "4", "x", ""})
  void rootsAreRanks(String root) {
    Problem bad =
        new Problem(
            Broadcast.NAME,
            Topology.of(2, 2),
            DType.F32,
            Map.of("m", 2L, "n", 2L),
            Map.of("root", root));
    assertThatThrownBy(() -> new BroadcastProvider().operands(bad))
        .isInstanceOf(UsageException.class)
        .hasMessage("option root is \"%s\"; a rank from 0 to 3 is needed", root);
  }
}
