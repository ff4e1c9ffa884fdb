package org.mkernel.runtime;

import org.mkernel.api.UsageException;

/**
 * The 8 bytes with which a device says that a transfer is due. From the top: lap (1 bit), epoch tag
 * (16), extent (23), transfer (24). The lap tells a full slot from an empty one, so that a command
 * all of whose other bits are zero is a command too.
 */
final class Command {
  static final int TRANSFER_BITS = 24;
  static final int EXTENT_BITS = 23;
  static final int EPOCH_BITS = 16;

  static final int MAX_TRANSFER = (1 << TRANSFER_BITS) - 1;
  static final int MAX_EXTENT = (1 << EXTENT_BITS) - 1;
  static final int EPOCH_MASK = (1 << EPOCH_BITS) - 1;
  static final long LAP = 1L << 63;

  private static final int EPOCH_SHIFT = TRANSFER_BITS + EXTENT_BITS;

  private Command() {}

  /**
   * Encodes a command, with the lap bit clear.
   *
   * @param transfer 0 … {@link #MAX_TRANSFER}
   * @param extent 0 … {@link #MAX_EXTENT}; 0 means the whole transfer
   * @param epoch the epoch, 0 or more; its low {@link #EPOCH_BITS} bits travel
   * @return the command
   * @throws UsageException when a field is out of range
   */
  static long encode(int transfer, int extent, long epoch) {
    if (transfer < 0 || transfer > MAX_TRANSFER) {
      throw new UsageException(
          "transfer %d; allowed are 0 to %d".formatted(transfer, MAX_TRANSFER));
    }
    if (extent < 0 || extent > MAX_EXTENT) {
      throw new UsageException("extent %d; allowed are 0 to %d".formatted(extent, MAX_EXTENT));
    }
    if (epoch < 0) {
      throw new UsageException("epoch %d; allowed are 0 to %d".formatted(epoch, Long.MAX_VALUE));
    }
    return ((epoch & EPOCH_MASK) << EPOCH_SHIFT) | ((long) extent << TRANSFER_BITS) | transfer;
  }

  /** The transfer that is due. */
  static int transfer(long command) {
    return (int) command & MAX_TRANSFER;
  }

  /** How much of the transfer is due; 0 for all of it. */
  static int extent(long command) {
    return (int) (command >>> TRANSFER_BITS) & MAX_EXTENT;
  }

  /** The low bits of the epoch. */
  static int epochTag(long command) {
    return (int) (command >>> EPOCH_SHIFT) & EPOCH_MASK;
  }
}
