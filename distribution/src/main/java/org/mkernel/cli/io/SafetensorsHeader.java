package org.mkernel.cli.io;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.CharBuffer;
import java.nio.charset.CoderResult;
import java.nio.charset.CodingErrorAction;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.mkernel.api.UsageException;
import tools.jackson.core.JacksonException;
import tools.jackson.core.JsonParser;
import tools.jackson.core.JsonToken;
import tools.jackson.core.ObjectReadContext;
import tools.jackson.core.StreamReadConstraints;
import tools.jackson.core.TokenStreamFactory;
import tools.jackson.core.json.JsonFactory;

/**
 * Reads the header of a safetensors file: its length as 8 bytes, then JSON that maps each tensor's
 * name to its type, its shape and its range in what follows. The ranges must cover all of that,
 * each byte once.
 *
 * @see <a href="https://github.com/huggingface/safetensors#format">the format</a>
 */
final class SafetensorsHeader {
  /** Some 300 000 tensors; the names and offsets of so many take 10² MB of heap at worst. */
  private static final int MAX_HEADER = 1 << 25;

  private static final int PREFIX = 8;
  private static final int NAMES_SHOWN = 20;
  private static final String METADATA = "__metadata__";

  private static final JsonFactory JSON =
      JsonFactory.builder()
          .streamReadConstraints(
              StreamReadConstraints.builder()
                  .maxNestingDepth(8)
                  .maxDocumentLength(MAX_HEADER)
                  .maxStringLength(MAX_HEADER)
                  .maxNameLength(1 << 16)
                  .maxNumberLength(32)
                  .build())
          // Tables of names would outlive the file.
          .disable(TokenStreamFactory.Feature.CANONICALIZE_PROPERTY_NAMES)
          .disable(TokenStreamFactory.Feature.INTERN_PROPERTY_NAMES)
          .disable(TokenStreamFactory.Feature.CHARSET_DETECTION)
          .build();

  private final String file;
  private final long dataStart;
  private final long dataBytes;
  private final JsonParser json;

  private final List<String> names = new ArrayList<>();
  private long[] begins = new long[16];
  private long[] ends = new long[16];

  private SafetensorsHeader(String file, long dataStart, long dataBytes, JsonParser json) {
    this.file = file;
    this.dataStart = dataStart;
    this.dataBytes = dataBytes;
    this.json = json;
  }

  /**
   * Reads the header and finds a tensor.
   *
   * @param file the file's name for messages
   * @param tensor the tensor's name; none to end in a message that lists the names
   */
  static Layout read(String file, Source source, Optional<String> tensor) throws IOException {
    long size = source.size();
    if (size < PREFIX) {
      throw new UsageException(
          "%s: truncated: %d bytes, but a header takes at least %d".formatted(file, size, PREFIX));
    }
    long length = ByteBuffer.wrap(source.bytes(0, PREFIX)).order(ByteOrder.LITTLE_ENDIAN).getLong();
    if (length < 0 || length > size - PREFIX) {
      throw new UsageException(
          "%s: the header's length at byte 0 is %s, but only %d bytes follow it"
              .formatted(file, Long.toUnsignedString(length), size - PREFIX));
    }
    if (length > MAX_HEADER) {
      throw new UsageException(
          "%s: the header's length at byte 0 is %d; at most %d can be read"
              .formatted(file, length, MAX_HEADER));
    }
    byte[] text = source.bytes(PREFIX, (int) length);
    if (text.length == 0 || text[0] != '{') {
      throw new UsageException("%s: header, byte 8: \"{\" is expected".formatted(file));
    }
    checkUtf8(file, text);
    try (JsonParser json = JSON.createParser(ObjectReadContext.empty(), text)) {
      long start = PREFIX + length;
      SafetensorsHeader header = new SafetensorsHeader(file, start, size - start, json);
      try {
        return header.tensors(tensor);
      } catch (JacksonException e) {
        throw header.broken(e);
      }
    }
  }

  /** Checks strictly, since parsers let overlong forms, surrogates and control characters pass. */
  private static void checkUtf8(String file, byte[] text) {
    for (int i = 0; i < text.length; i++) {
      if (text[i] >= 0 && text[i] < ' ' && text[i] != '\n' && text[i] != '\r' && text[i] != '\t') {
        throw new UsageException(
            "%s: header, byte %d: the control character %d".formatted(file, PREFIX + i, text[i]));
      }
    }
    ByteBuffer bytes = ByteBuffer.wrap(text);
    CharBuffer chars = CharBuffer.allocate(1 << 13);
    var decoder =
        StandardCharsets.UTF_8
            .newDecoder()
            .onMalformedInput(CodingErrorAction.REPORT)
            .onUnmappableCharacter(CodingErrorAction.REPORT);
    CoderResult result;
    do {
      result = decoder.decode(bytes, chars.clear(), true);
    } while (result.isOverflow());
    if (result.isError()) {
      throw new UsageException(
          "%s: header, byte %d: this is not UTF-8".formatted(file, PREFIX + bytes.position()));
    }
  }

  private Layout tensors(Optional<String> wanted) {
    Optional<Entry> found = Optional.empty();
    Set<String> keys = new HashSet<>();
    expect(JsonToken.START_OBJECT, "an object");
    while (next() == JsonToken.PROPERTY_NAME) {
      String name = json.currentName();
      if (!keys.add(name)) {
        throw wrong("the key %s is there twice".formatted(Text.quote(name)));
      }
      if (name.equals(METADATA)) {
        metadata();
      } else {
        Entry entry = entry(name);
        if (wanted.isPresent() && wanted.get().equals(name)) {
          found = Optional.of(entry);
        }
      }
    }
    if (next() != JsonToken.NOT_AVAILABLE) {
      throw wrong("there is text after the object");
    }
    checkOffsets();
    if (found.isEmpty()) {
      throw missing(wanted);
    }
    return layout(found.get());
  }

  private void metadata() {
    expect(JsonToken.START_OBJECT, METADATA + " as an object");
    Set<String> keys = new HashSet<>();
    while (next() == JsonToken.PROPERTY_NAME) {
      String key = json.currentName();
      if (!keys.add(key)) {
        throw wrong("the key %s of %s is there twice".formatted(Text.quote(key), METADATA));
      }
      expect(JsonToken.VALUE_STRING, "a string at the key %s".formatted(Text.quote(key)));
    }
  }

  private Entry entry(String name) {
    String where = Text.quote(name);
    Optional<String> dtype = Optional.empty();
    Optional<long[]> shape = Optional.empty();
    Optional<long[]> offsets = Optional.empty();
    expect(JsonToken.START_OBJECT, "%s as an object".formatted(where));
    while (next() == JsonToken.PROPERTY_NAME) {
      String key = json.currentName();
      boolean twice =
          switch (key) {
            case "dtype" -> dtype.isPresent();
            case "shape" -> shape.isPresent();
            case "data_offsets" -> offsets.isPresent();
            default ->
                throw wrong(
                    "%s has the key %s; allowed are \"dtype\", \"shape\", \"data_offsets\""
                        .formatted(where, Text.quote(key)));
          };
      if (twice) {
        throw wrong("%s has the key \"%s\" twice".formatted(where, key));
      }
      switch (key) {
        case "dtype" -> {
          expect(JsonToken.VALUE_STRING, "the dtype of %s as a string".formatted(where));
          dtype = Optional.of(json.getString());
        }
        case "shape" -> shape = Optional.of(numbers(where, key, Layout.MAX_DIMENSIONS));
        default -> offsets = Optional.of(numbers(where, key, 2));
      }
    }
    if (dtype.isEmpty() || shape.isEmpty() || offsets.isEmpty()) {
      throw wrong(
          "%s lacks the key \"%s\""
              .formatted(
                  where, dtype.isEmpty() ? "dtype" : shape.isEmpty() ? "shape" : "data_offsets"));
    }
    return checked(name, dtype.get(), shape.get(), offsets.get());
  }

  private Entry checked(String name, String dtype, long[] shape, long[] offsets) {
    String where = Text.quote(name);
    if (offsets.length != 2) {
      throw wrong("data_offsets of %s has %d numbers, not 2".formatted(where, offsets.length));
    }
    long begin = offsets[0];
    long end = offsets[1];
    if (begin > end) {
      throw wrong("data_offsets of %s run backwards: [%d, %d]".formatted(where, begin, end));
    }
    if (end > dataBytes) {
      throw wrong(
          "data_offsets of %s are [%d, %d], beyond the file: %d bytes of data are there"
              .formatted(where, begin, end, dataBytes));
    }
    Optional<ElementType> type =
        Arrays.stream(ElementType.values()).filter(t -> t.name().equals(dtype)).findFirst();
    // A file may hold types that cannot be read beside the tensor that is asked for.
    if (type.isPresent()) {
      long bytes = Layout.byteCount(shape, type.get().bytes);
      if (bytes < 0) {
        throw wrong("the shape of %s overflows: %s".formatted(where, Layout.show(shape)));
      }
      if (bytes != end - begin) {
        throw wrong(
            "%s takes %d bytes as %s of %s, but its data_offsets are [%d, %d]"
                .formatted(where, bytes, dtype, Layout.show(shape), begin, end));
      }
    }
    int index = names.size();
    if (index == begins.length) {
      begins = Arrays.copyOf(begins, index * 2);
      ends = Arrays.copyOf(ends, index * 2);
    }
    names.add(name);
    begins[index] = begin;
    ends[index] = end;
    return new Entry(name, dtype, type, shape, begin);
  }

  private long[] numbers(String where, String key, int limit) {
    expect(JsonToken.START_ARRAY, "%s of %s as an array".formatted(key, where));
    long[] numbers = new long[8];
    int count = 0;
    while (next() != JsonToken.END_ARRAY) {
      if (json.currentToken() != JsonToken.VALUE_NUMBER_INT) {
        throw wrong("%s of %s holds something that is no whole number".formatted(key, where));
      }
      if (count == limit) {
        throw wrong("%s of %s holds more than %d numbers".formatted(key, where, limit));
      }
      if (json.getNumberType() == JsonParser.NumberType.BIG_INTEGER) {
        throw wrong("%s of %s overflows: %s".formatted(key, where, json.getString()));
      }
      long number = json.getLongValue();
      if (number < 0) {
        throw wrong("%s of %s holds the negative number %d".formatted(key, where, number));
      }
      if (count == numbers.length) {
        numbers = Arrays.copyOf(numbers, count * 2);
      }
      numbers[count++] = number;
    }
    return Arrays.copyOf(numbers, count);
  }

  /** Checks that the ranges follow one another from the first byte to the last. */
  private void checkOffsets() {
    int[] order =
        IntStream.range(0, names.size())
            .boxed()
            .sorted((a, b) ->
                begins[a] != begins[b]
                    ? Long.compare(begins[a], begins[b])
                    : Long.compare(ends[a], ends[b]))
            .mapToInt(Integer::intValue)
            .toArray();
    long covered = 0;
    String before = "";
    for (int i : order) {
      String name = Text.quote(names.get(i));
      if (begins[i] < covered) {
        throw new UsageException(
            "%s: header: data_offsets of %s and %s overlap at %d"
                .formatted(file, before, name, begins[i]));
      }
      if (begins[i] > covered) {
        throw new UsageException(
            "%s: header: no tensor covers the data from %d to %d, where %s begins"
                .formatted(file, covered, begins[i], name));
      }
      covered = ends[i];
      before = name;
    }
    if (covered != dataBytes) {
      throw new UsageException(
          "%s: %d bytes of data are there from byte %d on, but the header's tensors take %d"
              .formatted(file, dataBytes, dataStart, covered));
    }
  }

  private UsageException missing(Optional<String> wanted) {
    String available =
        names.stream()
            .sorted()
            .limit(NAMES_SHOWN)
            .map(name -> Text.line(name, 80))
            .collect(Collectors.joining(", "));
    if (names.size() > NAMES_SHOWN) {
      available += " and %d more".formatted(names.size() - NAMES_SHOWN);
    }
    return new UsageException(
        "%s: %s; the file has %s"
            .formatted(
                file,
                wanted
                    .map(name -> "no tensor is named " + Text.quote(name))
                    .orElse("a tensor must be named, as FILE.safetensors#TENSOR"),
                names.isEmpty() ? "none" : available));
  }

  private Layout layout(Entry entry) {
    ElementType type =
        entry.type.orElseThrow(() ->
            new UsageException(
                "%s: header: the dtype of %s is %s; allowed are %s"
                    .formatted(
                        file,
                        Text.quote(entry.name),
                        Text.quote(entry.dtype),
                        Arrays.stream(ElementType.values())
                            .map(ElementType::name)
                            .collect(Collectors.joining(", ")))));
    return Layout.of(file, entry.dtype, type, false, dataStart + entry.begin, entry.shape, false);
  }

  /** The next token; {@link JsonToken#NOT_AVAILABLE} at the end. */
  private JsonToken next() {
    JsonToken token = json.nextToken();
    return token == null ? JsonToken.NOT_AVAILABLE : token;
  }

  private void expect(JsonToken wanted, String what) {
    if (next() != wanted) {
      throw wrong("%s is expected".formatted(what));
    }
  }

  /** The parser's words without its advice to programmers. */
  private UsageException broken(JacksonException e) {
    String said =
        String.valueOf(e.getOriginalMessage())
            .replaceAll(", from `[^`]*`|: enable `.*| \\(not recognized.*", "");
    long at = PREFIX + Math.max(0, json.currentLocation().getByteOffset());
    return new UsageException("%s: header, byte %d: %s".formatted(file, at, Text.line(said, 200)));
  }

  private UsageException wrong(String what) {
    long at = PREFIX + Math.max(0, json.currentTokenLocation().getByteOffset());
    return new UsageException("%s: header, byte %d: %s".formatted(file, at, what));
  }

  /** A tensor that passed the checks. */
  @SuppressWarnings("ArrayRecordComponent") // Never compared.
  private record Entry(
      String name, String dtype, Optional<ElementType> type, long[] shape, long begin) {}
}
