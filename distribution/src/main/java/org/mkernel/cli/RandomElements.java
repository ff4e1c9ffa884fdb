package org.mkernel.cli;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.SplittableRandom;
import org.mkernel.api.DType;
import org.mkernel.api.Tensor;

/**
 * Random elements, uniform in −1 … 1: how much power a product takes, and so how fast it is,
 * depends on its operands. A block of them is made once and repeated.
 */
final class RandomElements {
  private static final ValueLayout.OfInt INT =
      ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfShort SHORT =
      ValueLayout.JAVA_SHORT.withOrder(ByteOrder.LITTLE_ENDIAN);

  private static final int ELEMENTS = 4 << 20;
  private static final long SHIFT_BYTES = 4096;

  private final MemorySegment block;

  RandomElements(DType dtype, long seed) {
    this.block = Arena.ofAuto().allocate((long) ELEMENTS * dtype.bytes(), Long.BYTES);
    SplittableRandom random = new SplittableRandom(seed);
    for (int i = 0; i < ELEMENTS; i++) {
      int bits = dtype.encode((float) (random.nextDouble() * 2 - 1));
      if (dtype.bytes() == Integer.BYTES) {
        block.setAtIndex(INT, i, bits);
      } else {
        block.setAtIndex(SHORT, i, (short) bits);
      }
    }
  }

  /**
   * Fills a tensor.
   *
   * @param tensor the tensor
   * @param number where in the block to begin: tensors with different ones differ
   */
  void fill(Tensor tensor, int number) {
    long bytes = tensor.rows() * tensor.pitch();
    long from = number * SHIFT_BYTES % block.byteSize();
    for (long at = 0; at < bytes; ) {
      long length = Math.min(block.byteSize() - from, bytes - at);
      tensor.write(at, block.asSlice(from, length));
      at += length;
      from = 0;
    }
  }
}
