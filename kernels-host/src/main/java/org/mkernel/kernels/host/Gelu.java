package org.mkernel.kernels.host;

import org.mkernel.api.Activation;

/**
 * GELU fast enough for an epilogue: x·Φ(x) with Φ(−x) = ½·erfcx(x/√2)·exp(−x²/2). The scaled
 * complementary error function erfcx(z) = exp(z²)·erfc(z) is smooth, so cubic interpolation of a
 * table gives it to about 2e-9, far below the rounding of fp32. The derivative that cubic
 * interpolation needs is known: erfcx′(z) = 2·z·erfcx(z) − 2/√π.
 */
final class Gelu {
  private static final int STEPS = 64;

  /** Beyond it, Φ(−x) times x is below the smallest fp32. */
  private static final double END = 10.5;

  /** By point of the grid, value and derivative times the step. */
  private static final double[] TABLE = table();

  private Gelu() {}

  private static double[] table() {
    int points = (int) (END * STEPS) + 2;
    double[] table = new double[2 * points];
    for (int i = 0; i < points; i++) {
      double z = (double) i / STEPS;
      double x = -z * Math.sqrt(2);
      double value = i == 0 ? 1 : 2 * Activation.GELU.apply(x) / x * Math.exp(z * z);
      table[2 * i] = value;
      table[2 * i + 1] = (2 * z * value - 2 / Math.sqrt(Math.PI)) / STEPS;
    }
    return table;
  }

  static float apply(float value) {
    double x = value;
    double z = Math.abs(x) * 0.7071067811865476;
    if (!(z < END)) {
      return x < 0 ? value * 0f : value; // NaN stays; −∞ gives NaN, as the formula says.
    }
    double place = z * STEPS;
    int point = (int) place;
    double t = place - point;
    double v0 = TABLE[2 * point];
    double d0 = TABLE[2 * point + 1];
    double v1 = TABLE[2 * point + 2];
    double d1 = TABLE[2 * point + 3];
    double rise = v1 - v0;
    double erfcx = v0 + t * (d0 + t * (3 * rise - 2 * d0 - d1 + t * (d0 + d1 - 2 * rise)));
    double tail = 0.5 * erfcx * Math.exp(-0.5 * x * x);
    return (float) (x < 0 ? x * tail : x - x * tail);
  }
}
