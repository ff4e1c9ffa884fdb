package org.mkernel.runtime;

/** Commands of one queue pair that wait for room, in order. Allocates nothing once made. */
final class ParkingList {
  private final int[] transfers;
  private final long[] epochs;
  private final int mask;
  private long head;
  private long tail;

  /**
   * Makes an empty list.
   *
   * @param capacity how many it must hold, at least 1
   */
  ParkingList(int capacity) {
    int size = capacity == 1 ? 1 : Integer.highestOneBit(capacity - 1) << 1;
    transfers = new int[size];
    epochs = new long[size];
    mask = size - 1;
  }

  boolean isEmpty() {
    return head == tail;
  }

  boolean isFull() {
    return tail - head > mask;
  }

  void add(int transfer, long epoch) {
    int at = (int) tail & mask;
    transfers[at] = transfer;
    epochs[at] = epoch;
    tail++;
  }

  int firstTransfer() {
    return transfers[(int) head & mask];
  }

  long firstEpoch() {
    return epochs[(int) head & mask];
  }

  void removeFirst() {
    head++;
  }
}
