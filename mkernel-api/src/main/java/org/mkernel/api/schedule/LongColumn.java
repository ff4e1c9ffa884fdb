package org.mkernel.api.schedule;

import java.util.Arrays;

/** A growing column of longs. */
final class LongColumn {
  private long[] values = new long[16];
  private int size;

  void add(long value) {
    if (size == values.length) {
      values = Arrays.copyOf(values, size * 2);
    }
    values[size++] = value;
  }

  int size() {
    return size;
  }

  long get(int index) {
    return values[index];
  }

  void set(int index, long value) {
    values[index] = value;
  }

  long[] toArray() {
    return Arrays.copyOf(values, size);
  }
}
