package org.mkernel.kernels.host;

import java.util.Arrays;
import org.mkernel.api.DType;

/** Adds regions in the order given, in fp32, and rounds each sum once. */
final class Reducer {
  private final Row sum = new Row();
  private final Row term = new Row();
  private long[] addresses = new long[8];
  private long[] pitches = new long[8];
  private int sources;

  void begin(int count) {
    sources = count;
    if (count > addresses.length) {
      addresses = Arrays.copyOf(addresses, count);
      pitches = Arrays.copyOf(pitches, count);
    }
  }

  void source(int index, long address, long pitch) {
    addresses[index] = address;
    pitches[index] = pitch;
  }

  void run(DType dtype, long to, long toPitch, long rows, long rowBytes) {
    long columns = rowBytes / dtype.bytes();
    for (long row = 0; row < rows; row++) {
      for (long column = 0; column < columns; column += Row.LENGTH) {
        long at = column * dtype.bytes();
        int count = Row.length(column, columns);
        sum.load(dtype, addresses[0] + row * pitches[0] + at, count);
        for (int s = 1; s < sources; s++) {
          term.load(dtype, addresses[s] + row * pitches[s] + at, count);
          sum.add(term, count);
        }
        sum.store(dtype, to + row * toPitch + at, count);
      }
    }
  }
}
