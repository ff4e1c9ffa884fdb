package org.mkernel.kernels.host;

import java.util.Arrays;
import org.mkernel.api.DType;

/** Adds regions in the order given, in fp32, finishes each sum and rounds it once. Of one lane. */
final class Reducer {
  private final Epilogue epilogue;
  private final Row sum = new Row();
  private final Row term = new Row();
  private DType[] dtypes = new DType[8];
  private long[] addresses = new long[8];
  private long[] pitches = new long[8];
  private int sources;

  private DType biasType = DType.F32;
  private long biasAddress;

  Reducer(Epilogue epilogue) {
    this.epilogue = epilogue;
  }

  void begin(int count) {
    sources = count;
    if (count > addresses.length) {
      dtypes = Arrays.copyOf(dtypes, count);
      addresses = Arrays.copyOf(addresses, count);
      pitches = Arrays.copyOf(pitches, count);
    }
  }

  void source(int index, DType dtype, long address, long pitch) {
    dtypes[index] = dtype;
    addresses[index] = address;
    pitches[index] = pitch;
  }

  void bias(DType dtype, long address) {
    biasType = dtype;
    biasAddress = address;
  }

  void run(DType dtype, long to, long toPitch, long rows, long rowBytes) {
    long columns = rowBytes / dtype.bytes();
    if (isRun(dtype, toPitch, columns)) {
      addRow(dtype, to, 0, rows * columns);
      return;
    }
    for (long row = 0; row < rows; row++) {
      addRow(dtype, to + row * toPitch, row, columns);
    }
  }

  /** Whether there are no gaps: then all is one row. */
  private boolean isRun(DType dtype, long toPitch, long columns) {
    boolean run = !epilogue.hasBias() && toPitch == columns * dtype.bytes();
    for (int s = 0; s < sources; s++) {
      run &= pitches[s] == columns * dtypes[s].bytes();
    }
    return run;
  }

  private void addRow(DType dtype, long to, long row, long columns) {
    for (long column = 0; column < columns; column += Row.LENGTH) {
      int count = Row.length(column, columns);
      load(sum, 0, row, column, count);
      for (int s = 1; s < sources; s++) {
        load(term, s, row, column, count);
        sum.add(term, count);
      }
      if (!epilogue.changesNothing()) {
        epilogue.apply(sum, biasType, biasAddress + column * biasType.bytes(), count);
      }
      sum.store(dtype, to + column * dtype.bytes(), count);
    }
  }

  private void load(Row into, int source, long row, long column, int count) {
    DType dtype = dtypes[source];
    into.load(dtype, addresses[source] + row * pitches[source] + column * dtype.bytes(), count);
  }
}
