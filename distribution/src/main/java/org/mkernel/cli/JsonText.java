package org.mkernel.cli;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.List;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import tools.jackson.core.JsonGenerator;
import tools.jackson.core.ObjectWriteContext;
import tools.jackson.core.json.JsonFactory;

/** One JSON document, written in order. */
final class JsonText {
  private final StringWriter text = new StringWriter();
  private final JsonGenerator json =
      new JsonFactory().createGenerator(ObjectWriteContext.empty(), text);

  /** Writes the document. */
  JsonText object(Consumer<Fields> fields) {
    json.writeStartObject();
    fields.accept(new Fields());
    json.writeEndObject();
    json.close();
    return this;
  }

  void printTo(PrintWriter out) {
    out.println(text);
    out.flush();
  }

  @Override
  public String toString() {
    return text.toString();
  }

  /** The fields of an object. */
  final class Fields {
    void put(String name, String value) {
      json.writeName(name);
      json.writeString(value);
    }

    void put(String name, long value) {
      json.writeName(name);
      json.writeNumber(value);
    }

    void put(String name, boolean value) {
      json.writeName(name);
      json.writeBoolean(value);
    }

    /** A number; null, and what JSON has no number for, are null. */
    void putNumber(String name, @Nullable Double value) {
      json.writeName(name);
      if (value == null || !Double.isFinite(value)) {
        json.writeNull();
      } else {
        json.writeNumber(value.doubleValue());
      }
    }

    void putNull(String name) {
      json.writeName(name);
      json.writeNull();
    }

    void object(String name, Consumer<Fields> fields) {
      json.writeName(name);
      json.writeStartObject();
      fields.accept(this);
      json.writeEndObject();
    }

    void strings(String name, List<String> values) {
      json.writeName(name);
      json.writeStartArray();
      values.forEach(json::writeString);
      json.writeEndArray();
    }

    <T> void array(String name, List<T> values, BiConsumer<Fields, T> each) {
      json.writeName(name);
      json.writeStartArray();
      for (T value : values) {
        json.writeStartObject();
        each.accept(this, value);
        json.writeEndObject();
      }
      json.writeEndArray();
    }
  }
}
