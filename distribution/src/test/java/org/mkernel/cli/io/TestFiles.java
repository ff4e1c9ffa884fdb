package org.mkernel.cli.io;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/** Makes files byte by byte, sound ones and others. */
final class TestFiles {
  private TestFiles() {}

  static byte[] join(byte[]... parts) {
    int size = 0;
    for (byte[] part : parts) {
      size += part.length;
    }
    ByteBuffer all = ByteBuffer.allocate(size);
    for (byte[] part : parts) {
      all.put(part);
    }
    return all.array();
  }

  static byte[] npy(int version, String header, byte[] data) {
    return npy(version, header.length(), header, data);
  }

  static byte[] npy(int version, long length, String header, byte[] data) {
    ByteBuffer prefix = ByteBuffer.allocate(version == 1 ? 10 : 12).order(ByteOrder.LITTLE_ENDIAN);
    prefix.put(new byte[] {(byte) 0x93, 'N', 'U', 'M', 'P', 'Y', (byte) version, 0});
    if (version == 1) {
      prefix.putShort((short) length);
    } else {
      prefix.putInt((int) length);
    }
    return join(prefix.array(), header.getBytes(StandardCharsets.ISO_8859_1), data);
  }

  static String dictionary(String descr, boolean fortran, String shape) {
    return "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }      \n"
        .formatted(descr, fortran ? "True" : "False", shape);
  }

  static byte[] safetensors(String json, byte[] data) {
    byte[] text = json.getBytes(StandardCharsets.UTF_8);
    return safetensors(text.length, text, data);
  }

  static byte[] safetensors(long length, byte[] text, byte[] data) {
    byte[] prefix = ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putLong(length).array();
    return join(prefix, text, data);
  }

  static String tensor(String name, String dtype, String shape, String offsets) {
    return "\"%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":%s}"
        .formatted(name, dtype, shape, offsets);
  }

  /** Encodes a value that the type holds exactly. */
  static byte[] encode(ElementType type, double value, ByteOrder order) {
    ByteBuffer bytes = ByteBuffer.allocate(type.bytes).order(order);
    switch (type) {
      case F64 -> bytes.putDouble(value);
      case F32 -> bytes.putFloat((float) value);
      case F16 -> bytes.putShort(Float.floatToFloat16((float) value));
      case BF16 -> bytes.putShort((short) (Float.floatToIntBits((float) value) >>> 16));
      case I8, BOOL -> bytes.put((byte) value);
      case U8 -> bytes.put((byte) (int) value);
      case I16 -> bytes.putShort((short) value);
      case U16 -> bytes.putShort((short) (int) value);
      case I32 -> bytes.putInt((int) value);
      case U32 -> bytes.putInt((int) (long) value);
      case I64 -> bytes.putLong((long) value);
      case U64 -> bytes.putLong(new java.math.BigDecimal(value).toBigInteger().longValue());
    }
    return bytes.array();
  }
}
