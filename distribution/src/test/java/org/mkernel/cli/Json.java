package org.mkernel.cli;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import tools.jackson.core.JsonParser;
import tools.jackson.core.JsonToken;
import tools.jackson.core.ObjectReadContext;
import tools.jackson.core.json.JsonFactory;

/** Reads JSON as maps, lists, strings, longs, doubles, booleans and nulls. */
final class Json {
  private Json() {}

  /** A text that is one object and nothing else. */
  @SuppressWarnings("unchecked")
  static Map<String, Object> object(String text) {
    try (JsonParser json = new JsonFactory().createParser(ObjectReadContext.empty(), text)) {
      json.nextToken();
      Object value = value(json);
      if (json.nextToken() != null) {
        throw new AssertionError("more than one JSON document: " + text);
      }
      return (Map<String, Object>) value;
    }
  }

  private static @Nullable Object value(JsonParser json) {
    return switch (json.currentToken()) {
      case START_OBJECT -> {
        Map<String, Object> fields = new LinkedHashMap<>();
        while (json.nextToken() == JsonToken.PROPERTY_NAME) {
          String name = json.currentName();
          json.nextToken();
          if (fields.containsKey(name)) {
            throw new AssertionError("twice in one object: " + name);
          }
          fields.put(name, value(json));
        }
        yield fields;
      }
      case START_ARRAY -> {
        List<Object> values = new ArrayList<>();
        while (json.nextToken() != JsonToken.END_ARRAY) {
          values.add(value(json));
        }
        yield values;
      }
      case VALUE_STRING -> json.getString();
      case VALUE_NUMBER_INT -> json.getLongValue();
      case VALUE_NUMBER_FLOAT -> json.getDoubleValue();
      case VALUE_TRUE -> true;
      case VALUE_FALSE -> false;
      case VALUE_NULL -> null;
      default -> throw new AssertionError("unexpected " + json.currentToken());
    };
  }
}
