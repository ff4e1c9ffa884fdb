package org.mkernel.runtime;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Map;
import java.util.TreeMap;
import org.mkernel.api.DType;
import org.mkernel.api.spi.CollectiveProvider.Request;
import org.mkernel.api.spi.CollectiveProvider.Shape;

/**
 * What ranks tell each other when they prepare: operator and request, or why one can't take part.
 */
final class RequestCodec {
  private static final int VERSION = 1;

  private RequestCodec() {}

  /**
   * What one rank says.
   *
   * @param operator the operator it asks for
   * @param request its operands and options
   * @param problem why it can't take part; empty when it can
   */
  record Message(String operator, Request request, String problem) {}

  static byte[] encode(Message message) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (DataOutputStream out = new DataOutputStream(bytes)) {
      out.writeInt(VERSION);
      out.writeUTF(message.operator());
      out.writeUTF(message.problem());
      out.writeInt(message.request().operands().size());
      for (Map.Entry<String, Shape> e : new TreeMap<>(message.request().operands()).entrySet()) {
        out.writeUTF(e.getKey());
        out.writeUTF(e.getValue().dtype().label());
        out.writeLong(e.getValue().rows());
        out.writeLong(e.getValue().columns());
      }
      out.writeInt(message.request().options().size());
      for (Map.Entry<String, String> e : new TreeMap<>(message.request().options()).entrySet()) {
        out.writeUTF(e.getKey());
        out.writeUTF(e.getValue());
      }
    } catch (IOException e) {
      throw new UncheckedIOException("a string of a request is longer than 65535 bytes", e);
    }
    return bytes.toByteArray();
  }

  static Message decode(byte[] bytes) {
    try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes))) {
      int version = in.readInt();
      if (version != VERSION) {
        throw new IOException("version %d where %d is spoken".formatted(version, VERSION));
      }
      String operator = in.readUTF();
      String problem = in.readUTF();
      Map<String, Shape> operands = new TreeMap<>();
      for (int left = in.readInt(); left > 0; left--) {
        operands.put(in.readUTF(), new Shape(DType.of(in.readUTF()), in.readLong(), in.readLong()));
      }
      Map<String, String> options = new TreeMap<>();
      for (int left = in.readInt(); left > 0; left--) {
        options.put(in.readUTF(), in.readUTF());
      }
      return new Message(operator, new Request(operands, options), problem);
    } catch (IOException e) {
      throw new UncheckedIOException("a request that can't be read", e);
    }
  }
}
