package org.mkernel.api;

import java.util.Locale;

/** The function that an epilogue applies to each element, in fp32, after the bias was added. */
public enum Activation {
  /** x. */
  NONE,
  /** max(x, 0). */
  RELU,
  /** x/2 · (1 + erf(x/√2)), the exact form. */
  GELU,
  /** x / (1 + e⁻ˣ). */
  SILU;

  /**
   * The name as the command line spells it.
   *
   * @return the name in lower case
   */
  public String label() {
    return name().toLowerCase(Locale.ROOT);
  }

  /**
   * Reads a name.
   *
   * @param name {@code none}, {@code relu}, {@code gelu} or {@code silu}, in any case
   * @return the function
   * @throws UsageException when there is no such function
   */
  public static Activation of(String name) {
    for (Activation activation : values()) {
      if (activation.name().equalsIgnoreCase(name)) {
        return activation;
      }
    }
    throw new UsageException(
        "activation is \"%s\"; allowed are none, relu, gelu, silu".formatted(name));
  }

  /**
   * Applies the function in double precision, for references.
   *
   * @param x the argument
   * @return the function's value, to about 1e-15 relative to the larger of |x| and 1
   */
  public double apply(double x) {
    return switch (this) {
      case NONE -> x;
      case RELU -> x > 0 || Double.isNaN(x) ? x : 0.0;
      case GELU -> 0.5 * x * erfc(-x / Math.sqrt(2));
      case SILU -> x / (1 + Math.exp(-x));
    };
  }

  /** erfc by its power series near zero and by its continued fraction (Lentz) in the tails. */
  private static double erfc(double x) {
    double z = Math.abs(x);
    double upper;
    if (z < 2.5) {
      double term = z;
      double sum = z;
      for (int n = 1; Math.abs(term) > 1e-17 * sum; n++) {
        term *= -z * z / n;
        sum += term / (2 * n + 1);
      }
      upper = 1 - 2 / Math.sqrt(Math.PI) * sum;
    } else {
      // erfc(z) = e^(-z²)/√π · 1/(z + (1/2)/(z + 1/(z + (3/2)/(z + …)))), evaluated backwards.
      double tail = z;
      for (int n = 60; n > 0; n--) {
        tail = z + n / 2.0 / tail;
      }
      upper = Math.exp(-z * z) / Math.sqrt(Math.PI) / tail;
    }
    return x < 0 ? 2 - upper : upper;
  }
}
