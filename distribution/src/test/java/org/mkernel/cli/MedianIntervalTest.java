package org.mkernel.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.util.SplittableRandom;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

final class MedianIntervalTest {
  private static double[] upTo(int count) {
    return IntStream.rangeClosed(1, count).mapToDouble(i -> count + 1 - i).toArray();
  }

  /** Ranks from tables of the sign test. */
  @Test
  void theEndsAreTheOrderStatisticsOfTheSignTest() {
    assertThat(MedianInterval.of(upTo(6))).isEqualTo(new MedianInterval(3.5, 1, 6, 0.96875));
    assertThat(MedianInterval.of(upTo(15)))
        .satisfies(i -> {
          assertThat(i.median()).isEqualTo(8);
          assertThat(i.low()).isEqualTo(4);
          assertThat(i.high()).isEqualTo(12);
          assertThat(i.confidence()).isCloseTo(0.9648, within(1e-4));
        });
    assertThat(MedianInterval.of(upTo(25)))
        .satisfies(i -> {
          assertThat(i.low()).isEqualTo(8);
          assertThat(i.high()).isEqualTo(18);
        });
  }

  @Test
  void fewSamplesGiveLessConfidence() {
    assertThat(MedianInterval.of(upTo(1))).isEqualTo(new MedianInterval(1, 1, 1, 0));
    assertThat(MedianInterval.of(upTo(3))).isEqualTo(new MedianInterval(2, 1, 3, 0.75));
  }

  @Test
  void theTrueMedianIsInsideAsOftenAsPromised() {
    SplittableRandom random = new SplittableRandom(1);
    int inside = 0;
    int runs = 4000;
    for (int run = 0; run < runs; run++) {
      double[] samples = random.doubles(9).map(x -> x * x * x).toArray();
      MedianInterval interval = MedianInterval.of(samples);
      if (interval.low() <= 0.125 && 0.125 <= interval.high()) {
        inside++;
      }
    }
    double promised = MedianInterval.of(upTo(9)).confidence();
    assertThat((double) inside / runs).isCloseTo(promised, within(0.02));
  }
}
