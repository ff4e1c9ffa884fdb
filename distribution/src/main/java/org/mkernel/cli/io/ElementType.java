package org.mkernel.cli.io;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/** How a file can store an element. */
enum ElementType {
  F64(8),
  F32(4),
  F16(2),
  BF16(2),
  I8(1),
  I16(2),
  I32(4),
  I64(8),
  U8(1),
  U16(2),
  U32(4),
  U64(8),
  BOOL(1);

  // Constant layouts: an access through a layout that is no constant is slower by far.
  private static final ValueLayout.OfShort SHORT =
      ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfInt INT =
      ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfLong LONG =
      ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  /** The size of an element. */
  final int bytes;

  ElementType(int bytes) {
    this.bytes = bytes;
  }

  /** The element's bits, the first byte lowest, or highest when {@code swap}. */
  private long bits(MemorySegment data, long offset, boolean swap) {
    return switch (bytes) {
      case 1 -> data.get(ValueLayout.JAVA_BYTE, offset);
      case 2 -> {
        short bits = data.get(SHORT, offset);
        yield swap ? Short.reverseBytes(bits) : bits;
      }
      case 4 -> {
        int bits = data.get(INT, offset);
        yield swap ? Integer.reverseBytes(bits) : bits;
      }
      default -> {
        long bits = data.get(LONG, offset);
        yield swap ? Long.reverseBytes(bits) : bits;
      }
    };
  }

  /** The element's value; exact if {@link #exact} says so, else rounded. */
  double decode(MemorySegment data, long offset, boolean swap) {
    long bits = bits(data, offset, swap);
    return switch (this) {
      case F64 -> Double.longBitsToDouble(bits);
      case F32 -> Float.intBitsToFloat((int) bits);
      case F16 -> Float.float16ToFloat((short) bits);
      case BF16 -> Float.intBitsToFloat((int) bits << 16);
      case I8, I16, I32, I64 -> bits;
      case U8 -> bits & 0xff;
      case U16 -> bits & 0xffff;
      case U32 -> bits & 0xffff_ffffL;
      case U64 -> bits >= 0 ? bits : ((bits >>> 1) | (bits & 1)) * 2.0;
      case BOOL -> bits == 0 ? 0 : 1;
    };
  }

  /** Whether a double holds the element's value exactly. */
  boolean exact(MemorySegment data, long offset, boolean swap) {
    if (this != I64 && this != U64) {
      return true;
    }
    long bits = bits(data, offset, swap);
    long magnitude = this == I64 ? Math.abs(bits) : bits;
    return magnitude == 0
        || Long.SIZE - Long.numberOfLeadingZeros(magnitude) - Long.numberOfTrailingZeros(magnitude)
            <= 53;
  }

  /** The element's value as a message shows it. Only for integers of 64 bits. */
  String show(MemorySegment data, long offset, boolean swap) {
    long bits = bits(data, offset, swap);
    return this == U64 ? Long.toUnsignedString(bits) : Long.toString(bits);
  }
}
