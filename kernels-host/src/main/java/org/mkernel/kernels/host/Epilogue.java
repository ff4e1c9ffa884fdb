package org.mkernel.kernels.host;

import org.mkernel.api.Activation;
import org.mkernel.api.DType;

/**
 * What happens to fp32 sums before they are stored: bias, activation, one rounding. Of one lane.
 */
final class Epilogue {
  static final Epilogue NONE = new Epilogue(false, Activation.NONE);

  private final boolean bias;
  private final Activation activation;
  private final Row row = new Row();
  private final Row biasRow = new Row();

  Epilogue(boolean bias, Activation activation) {
    this.bias = bias;
    this.activation = activation;
  }

  boolean hasBias() {
    return bias;
  }

  boolean changesNothing() {
    return !bias && activation == Activation.NONE;
  }

  /** Reads sums, rows of which are {@code fromPitch} bytes apart, and writes outputs. */
  void run(
      long from,
      long fromPitch,
      DType biasType,
      long biasAddress,
      DType dtype,
      long to,
      long toPitch,
      long rows,
      long columns) {
    for (long column = 0; column < columns; column += Row.LENGTH) {
      int count = Row.length(column, columns);
      if (bias) {
        biasRow.load(biasType, biasAddress + column * biasType.bytes(), count);
      }
      for (long r = 0; r < rows; r++) {
        row.load(DType.F32, from + r * fromPitch + column * Float.BYTES, count);
        if (bias) {
          row.add(biasRow, count);
        }
        activate(row.values, count);
        row.store(dtype, to + r * toPitch + column * dtype.bytes(), count);
      }
    }
  }

  /** Changes a piece of a row, whose bias starts at an address if there is one. */
  void apply(Row sums, DType biasType, long biasAddress, int count) {
    if (bias) {
      biasRow.load(biasType, biasAddress, count);
      sums.add(biasRow, count);
    }
    activate(sums.values, count);
  }

  private void activate(float[] values, int count) {
    switch (activation) {
      case NONE -> {}
      case RELU -> {
        for (int i = 0; i < count; i++) {
          values[i] = Math.max(values[i], 0f);
        }
      }
      case GELU -> {
        for (int i = 0; i < count; i++) {
          values[i] = Gelu.apply(values[i]);
        }
      }
      case SILU -> {
        for (int i = 0; i < count; i++) {
          values[i] = (float) (values[i] / (1 + Math.exp(-(double) values[i])));
        }
      }
    }
  }
}
