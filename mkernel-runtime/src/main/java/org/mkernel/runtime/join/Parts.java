package org.mkernel.runtime.join;

import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** A list of byte strings, some of which may be missing, under a number. */
final class Parts {
  private static final int MISSING = -1;

  private Parts() {}

  static byte[] encode(long number, byte[] @Nullable [] parts) {
    int bytes = Long.BYTES + Integer.BYTES * (1 + parts.length);
    for (byte[] part : parts) {
      bytes = Math.addExact(bytes, part == null ? 0 : part.length);
    }
    ByteBuffer out = ByteBuffer.allocate(bytes).putLong(number).putInt(parts.length);
    for (byte[] part : parts) {
      if (part == null) {
        out.putInt(MISSING);
      } else {
        out.putInt(part.length).put(part);
      }
    }
    return out.array();
  }

  static long number(byte[] payload) throws ProtocolException {
    if (payload.length < Long.BYTES) {
      throw new ProtocolException("a numbered message of %d bytes".formatted(payload.length));
    }
    return ByteBuffer.wrap(payload).getLong();
  }

  static List<Optional<byte[]>> decode(byte[] payload, int expected) throws ProtocolException {
    ByteBuffer in = ByteBuffer.wrap(payload);
    try {
      in.getLong();
      int count = in.getInt();
      if (count != expected) {
        throw new ProtocolException("%d parts where %d ranks are".formatted(count, expected));
      }
      List<Optional<byte[]>> parts = new ArrayList<>(count);
      for (int i = 0; i < count; i++) {
        int length = in.getInt();
        if (length < MISSING || length > in.remaining()) {
          throw new ProtocolException("a part of %d bytes".formatted(length));
        }
        if (length == MISSING) {
          parts.add(Optional.empty());
        } else {
          byte[] part = new byte[length];
          in.get(part);
          parts.add(Optional.of(part));
        }
      }
      return parts;
    } catch (BufferUnderflowException e) {
      throw new ProtocolException("parts that end early");
    }
  }
}
