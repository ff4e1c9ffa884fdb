package org.mkernel.api.schedule;

import org.mkernel.api.DType;
import org.mkernel.api.UsageException;

/**
 * A buffer that every rank has under one name and number. An operand belongs to the caller and may
 * differ in size between ranks; a workspace belongs to the operation and is symmetric.
 *
 * <p>A buffer of depth d has d slots; epoch e uses slot e mod d, and a remote write in epoch e
 * waits for its owner to have entered epoch e − d + 1.
 *
 * @param index its number, from 0
 * @param name its name, unique in the schedule
 * @param use whose it is
 * @param dtype the type of its elements
 * @param bytes the size of one slot on each rank, in bytes
 * @param depth the number of slots; 1 for operands
 */
public record BufferSpec(int index, String name, Use use, DType dtype, long[] bytes, int depth) {

  /** Whose a buffer is and what happens to it. */
  public enum Use {
    /** The caller's, read. */
    INPUT,
    /** The caller's, written: each byte exactly once. */
    OUTPUT,
    /** The operation's. */
    WORKSPACE
  }

  /** Checks sizes and depth. */
  public BufferSpec {
    bytes = bytes.clone();
    for (long size : bytes) {
      if (size < 0) {
        throw new UsageException(
            "buffer %s has %d bytes; at least 0 are needed".formatted(name, size));
      }
    }
    if (depth < 1 || (use != Use.WORKSPACE && depth != 1)) {
      throw new UsageException(
          "buffer %s has depth %d; operands have 1, workspaces at least 1".formatted(name, depth));
    }
  }

  /**
   * The sizes of one slot.
   *
   * @return a copy, by rank
   */
  @Override
  public long[] bytes() {
    return bytes.clone();
  }

  /**
   * The size of one slot on a rank.
   *
   * @param rank the rank
   * @return bytes
   */
  public long bytes(int rank) {
    return bytes[rank];
  }
}
