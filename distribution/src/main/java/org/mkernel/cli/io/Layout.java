package org.mkernel.cli.io;

import java.util.Arrays;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import org.mkernel.api.UsageException;

/**
 * Where a tensor's elements lie in a file. Dimensions before the last are folded into rows, the
 * last of them running fastest.
 *
 * @param dtype the element type as the file spells it
 * @param type the element type
 * @param swap whether elements are big-endian
 * @param offset the first element's byte
 * @param leading the dimensions that are folded into rows
 * @param leadingStrides the step along each of them, in bytes
 * @param rows their product
 * @param columns the last dimension
 * @param columnStride the step from a column to the next, in bytes
 */
@SuppressWarnings("ArrayRecordComponent") // Never compared, and never seen outside.
record Layout(
    String dtype,
    ElementType type,
    boolean swap,
    long offset,
    long[] leading,
    long[] leadingStrides,
    long rows,
    long columns,
    long columnStride) {

  /** More than any format or library allows. */
  static final int MAX_DIMENSIONS = 64;

  /**
   * Makes a layout of a shape. The caller has checked with {@link #byteCount} that the elements
   * fit.
   *
   * @param file the file's name for messages
   */
  static Layout of(
      String file,
      String dtype,
      ElementType type,
      boolean swap,
      long offset,
      long[] shape,
      boolean fortran) {
    for (long dimension : shape) {
      if (dimension == 0) {
        throw new UsageException(
            "%s: the tensor has no elements: its shape is %s".formatted(file, show(shape)));
      }
    }
    int last = shape.length - 1;
    long[] strides = new long[shape.length];
    long stride = type.bytes;
    for (int i = 0; i < shape.length; i++) {
      int dimension = fortran ? i : last - i;
      strides[dimension] = stride;
      stride *= shape[dimension];
    }
    if (shape.length == 0) {
      return new Layout(dtype, type, swap, offset, shape, strides, 1, 1, type.bytes);
    }
    long[] leading = Arrays.copyOf(shape, last);
    return new Layout(
        dtype,
        type,
        swap,
        offset,
        leading,
        Arrays.copyOf(strides, last),
        Arrays.stream(leading).reduce(1, (a, b) -> a * b),
        shape[last],
        strides[last]);
  }

  /** The bytes that a shape takes, or -1 when they are more than a {@code long} can tell. */
  static long byteCount(long[] shape, int size) {
    if (LongStream.of(shape).anyMatch(dimension -> dimension == 0)) {
      return 0;
    }
    long bytes = size;
    for (long dimension : shape) {
      if (Math.multiplyHigh(bytes, dimension) != 0 || bytes * dimension < 0) {
        return -1;
      }
      bytes *= dimension;
    }
    return bytes;
  }

  /** A shape as a message shows it. */
  static String show(long[] shape) {
    return LongStream.of(shape)
        .mapToObj(Long::toString)
        .collect(Collectors.joining(", ", "(", ")"));
  }

  /** The byte of an element. */
  long position(long row, long column) {
    long position = offset + column * columnStride;
    long rest = row;
    for (int i = leading.length - 1; i > 0; i--) {
      position += rest % leading[i] * leadingStrides[i];
      rest /= leading[i];
    }
    return leading.length == 0 ? position : position + rest * leadingStrides[0];
  }
}
