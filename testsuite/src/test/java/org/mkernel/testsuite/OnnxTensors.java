package org.mkernel.testsuite;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/**
 * The constant tensors of an ONNX model: ModelProto.graph (7), its initializers (5), and of each
 * TensorProto data_type (2), float_data (4), int32_data (5), name (8), raw_data (9).
 */
final class OnnxTensors {
  private static final int FLOAT = 1;
  private static final int UINT8 = 2;
  private static final int INT8 = 3;

  private final Map<String, Tensor> tensors = new HashMap<>();

  /** What a tensor is made of; whoever asks for it knows its shape. */
  private static final class Tensor {
    private String name = "";
    private int type;
    private ByteBuffer floats = ByteBuffer.allocate(0);
    private ByteBuffer ints = ByteBuffer.allocate(0);
    private ByteBuffer raw = ByteBuffer.allocate(0);
  }

  /** Called for each field of a message; a number has an empty part. */
  private interface Field {
    void accept(int number, long value, ByteBuffer part);
  }

  OnnxTensors(byte[] model) {
    each(
        ByteBuffer.wrap(model),
        (number, _, graph) -> {
          if (number == 7) {
            each(
                graph,
                (inner, _, tensor) -> {
                  if (inner == 5) {
                    add(tensor);
                  }
                });
          }
        });
  }

  private void add(ByteBuffer message) {
    Tensor tensor = new Tensor();
    each(
        message,
        (number, value, part) -> {
          switch (number) {
            case 2 -> tensor.type = (int) value;
            case 4 -> tensor.floats = part;
            case 5 -> tensor.ints = part;
            case 8 -> tensor.name = UTF_8.decode(part).toString();
            case 9 -> tensor.raw = part;
            default -> {}
          }
        });
    tensors.put(tensor.name, tensor);
  }

  private static void each(ByteBuffer message, Field field) {
    message.order(ByteOrder.LITTLE_ENDIAN);
    while (message.hasRemaining()) {
      long tag = number(message);
      ByteBuffer part = ByteBuffer.allocate(0);
      long value = 0;
      switch ((int) tag & 7) {
        case 0 -> value = number(message);
        case 1 -> value = message.getLong();
        case 2 -> {
          int length = Math.toIntExact(number(message));
          part = message.slice(message.position(), length).order(ByteOrder.LITTLE_ENDIAN);
          message.position(message.position() + length);
        }
        case 5 -> value = message.getInt();
        default -> throw new AssertionError("wire type of tag " + tag);
      }
      field.accept((int) (tag >>> 3), value, part);
    }
  }

  private static long number(ByteBuffer message) {
    long value = 0;
    for (int shift = 0; ; shift += 7) {
      byte next = message.get();
      value |= (long) (next & 0x7f) << shift;
      if (next >= 0) {
        return value;
      }
    }
  }

  /** All elements of a tensor, row by row. */
  float[] elements(String name) {
    Tensor tensor = tensors.get(name);
    if (tensor == null) {
      throw new AssertionError("no tensor " + name + "; there are " + tensors.keySet());
    }
    return switch (tensor.type) {
      case FLOAT -> floats(tensor.raw.hasRemaining() ? tensor.raw : tensor.floats);
      case UINT8, INT8 -> tensor.raw.hasRemaining() ? bytes(tensor) : numbers(tensor.ints);
      default -> throw new AssertionError("data type " + tensor.type + " of " + name);
    };
  }

  private static float[] floats(ByteBuffer part) {
    FloatBuffer floats = part.duplicate().order(ByteOrder.LITTLE_ENDIAN).asFloatBuffer();
    float[] elements = new float[floats.remaining()];
    floats.get(elements);
    return elements;
  }

  private static float[] bytes(Tensor tensor) {
    float[] elements = new float[tensor.raw.remaining()];
    for (int i = 0; i < elements.length; i++) {
      byte value = tensor.raw.get(i);
      elements[i] = tensor.type == UINT8 ? Byte.toUnsignedInt(value) : value;
    }
    return elements;
  }

  /** Numbers of variable length, one after the other. */
  private static float[] numbers(ByteBuffer part) {
    ByteBuffer ints = part.duplicate();
    float[] elements = new float[ints.remaining()];
    int count = 0;
    while (ints.hasRemaining()) {
      elements[count++] = number(ints);
    }
    return Arrays.copyOf(elements, count);
  }

  /** Weights that were quantised to eight bits, with one scale for all or one for each column. */
  float[] dequantised(String name, int columns) {
    float[] quantised = elements(name + "_quantized");
    float[] scale = elements(name + "_scale");
    float[] zero = elements(name + "_zero_point");
    if (zero.length != scale.length || (scale.length != 1 && scale.length != columns)) {
      throw new AssertionError(
          "%s has %d scales and %d zero points".formatted(name, scale.length, zero.length));
    }
    float[] weights = new float[quantised.length];
    for (int i = 0; i < weights.length; i++) {
      int at = scale.length == 1 ? 0 : i % columns;
      weights[i] = (quantised[i] - zero[at]) * scale[at];
    }
    return weights;
  }
}
