package org.mkernel.api.schedule;

import java.util.Arrays;

/** A growing column of ints. */
final class IntColumn {
  private int[] values = new int[16];
  private int size;

  void add(int value) {
    if (size == values.length) {
      values = Arrays.copyOf(values, size * 2);
    }
    values[size++] = value;
  }

  int size() {
    return size;
  }

  int get(int index) {
    return values[index];
  }

  void set(int index, int value) {
    values[index] = value;
  }

  int[] toArray() {
    return Arrays.copyOf(values, size);
  }
}
