package org.mkernel.collectives;

/** Magnitudes of what was only moved. */
final class Magnitudes {
  private Magnitudes() {}

  static void of(double[] values, double[] magnitudes) {
    for (int i = 0; i < values.length; i++) {
      magnitudes[i] = Math.abs(values[i]);
    }
  }
}
