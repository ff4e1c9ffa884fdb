package org.mkernel.check;

/** Sorts numbers by a column of keys, without objects: a stable merge sort from below. */
final class IndexSort {
  private IndexSort() {}

  /** The numbers 0 … size − 1 in the order of their keys. */
  static int[] by(long[] key, int size) {
    int[] from = new int[size];
    for (int i = 0; i < size; i++) {
      from[i] = i;
    }
    int[] to = new int[size];
    for (long width = 1; width < size; width *= 2) {
      for (long start = 0; start < size; start += 2 * width) {
        int middle = (int) Math.min(size, start + width);
        merge(key, from, to, (int) start, middle, (int) Math.min(size, start + 2 * width));
      }
      int[] swap = from;
      from = to;
      to = swap;
    }
    return from;
  }

  private static void merge(long[] key, int[] from, int[] to, int start, int middle, int end) {
    int left = start;
    int right = middle;
    for (int at = start; at < end; at++) {
      boolean takeLeft = left < middle && (right == end || key[from[left]] <= key[from[right]]);
      to[at] = takeLeft ? from[left++] : from[right++];
    }
  }
}
