package org.mkernel.api;

import java.util.Arrays;
import java.util.Locale;
import java.util.stream.Collectors;

/**
 * The type of a tensor's elements. Products and sums are accumulated in {@link #F32} in any case.
 */
public enum DType {
  /** IEEE 754 binary32. */
  F32(4, 24),
  /** IEEE 754 binary16. */
  F16(2, 11),
  /** The upper half of a binary32: 8 bits of exponent, 8 of significand. */
  BF16(2, 8);

  private final int bytes;
  private final int significandBits;

  DType(int bytes, int significandBits) {
    this.bytes = bytes;
    this.significandBits = significandBits;
  }

  /**
   * The size of an element.
   *
   * @return bytes
   */
  public int bytes() {
    return bytes;
  }

  /**
   * The precision: integers of magnitude up to 2 to this power are exact.
   *
   * @return bits of the significand, the implicit one included
   */
  public int significandBits() {
    return significandBits;
  }

  /**
   * The name as the command line spells it: {@code f32}, {@code f16}, {@code bf16}.
   *
   * @return the name in lower case
   */
  public String label() {
    return name().toLowerCase(Locale.ROOT);
  }

  /**
   * Reads a name.
   *
   * @param name {@code f32}, {@code f16} or {@code bf16}, in any case
   * @return the type
   * @throws UsageException when there is no such type
   */
  public static DType of(String name) {
    for (DType type : values()) {
      if (type.name().equalsIgnoreCase(name)) {
        return type;
      }
    }
    throw new UsageException(
        "dtype is \"%s\"; allowed are %s"
            .formatted(
                name, Arrays.stream(values()).map(DType::label).collect(Collectors.joining(", "))));
  }

  /**
   * Decodes an element.
   *
   * @param bits the element's bytes as a little-endian integer; bits above its size are ignored
   * @return its value, exactly
   */
  public float decode(int bits) {
    return switch (this) {
      case F32 -> Float.intBitsToFloat(bits);
      case F16 -> Float.float16ToFloat((short) bits);
      case BF16 -> Float.intBitsToFloat(bits << 16);
    };
  }

  /**
   * Encodes a value, rounded to nearest, ties to even.
   *
   * @param value any value, infinities and NaN included
   * @return the element's bytes as a little-endian integer, zero above its size
   */
  public int encode(float value) {
    return switch (this) {
      case F32 -> Float.floatToRawIntBits(value);
      case F16 -> Float.floatToFloat16(value) & 0xffff;
      case BF16 -> {
        int bits = Float.floatToRawIntBits(value);
        yield Float.isNaN(value)
            ? (bits >>> 16) | 0x40
            : (bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16;
      }
    };
  }
}
