package org.mkernel.cli.io;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import org.mkernel.api.UsageException;

/**
 * Reads the header of a {@code .npy} file of version 1, 2 or 3: a magic, a length, and a Python
 * dictionary of three known keys, which is read here without recursion.
 *
 * @see <a href="https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html">the
 *     format</a>
 */
final class NpyHeader {
  private static final byte[] MAGIC = {(byte) 0x93, 'N', 'U', 'M', 'P', 'Y'};

  /** A plain array's header takes less than a kilobyte; only structured types take more. */
  private static final int MAX_HEADER = 1 << 16;

  private final String file;
  private final int start;
  private final byte[] text;
  private int at;

  private NpyHeader(String file, int start, byte[] text) {
    this.file = file;
    this.start = start;
    this.text = text;
  }

  static Layout read(String file, Source source) throws IOException {
    long size = source.size();
    byte[] fixed = source.bytes(0, (int) Math.min(12, size));
    if (!Arrays.equals(fixed, 0, Math.min(6, fixed.length), MAGIC, 0, 6)) {
      throw new UsageException(
          "%s: no .npy file: its first bytes are not \\x93NUMPY".formatted(file));
    }
    if (fixed.length < 10) {
      throw truncated(file, size, 10);
    }
    int major = fixed[6];
    if (major < 1 || major > 3 || fixed[7] != 0) {
      throw new UsageException(
          "%s: .npy version %d.%d at byte 6; 1.0, 2.0 and 3.0 can be read"
              .formatted(file, major & 0xff, fixed[7] & 0xff));
    }
    int start = major == 1 ? 10 : 12;
    if (fixed.length < start) {
      throw truncated(file, size, start);
    }
    long length = 0;
    for (int i = start - 1; i >= 8; i--) {
      length = length << 8 | (fixed[i] & 0xff);
    }
    if (length > size - start) {
      throw new UsageException(
          "%s: the header's length at byte 8 is %d, but only %d bytes follow it"
              .formatted(file, length, size - start));
    }
    if (length > MAX_HEADER) {
      throw new UsageException(
          "%s: the header's length at byte 8 is %d; at most %d can be read"
              .formatted(file, length, MAX_HEADER));
    }
    NpyHeader header = new NpyHeader(file, start, source.bytes(start, (int) length));
    return header.dictionary(size);
  }

  private static UsageException truncated(String file, long size, int need) {
    return new UsageException(
        "%s: truncated: %d bytes, but a header takes at least %d".formatted(file, size, need));
  }

  private Layout dictionary(long size) {
    String descr = "";
    int descrAt = 0;
    int shapeAt = 0;
    boolean fortran = false;
    long[] shape = {};
    Set<String> seen = new HashSet<>();
    expect('{');
    while (!next('}')) {
      if (!seen.isEmpty()) {
        expect(',');
        if (next('}')) {
          break;
        }
      }
      skipBlanks();
      int keyAt = at;
      String key = string("a key");
      if (!seen.add(key)) {
        throw wrong(keyAt, "the key %s is there twice".formatted(Text.quote(key)));
      }
      expect(':');
      skipBlanks();
      switch (key) {
        case "descr" -> {
          descrAt = at;
          if (at < text.length && text[at] == '[') {
            throw wrong(at, "descr is a structured type; only numbers can be read");
          }
          descr = string("a type as a string");
        }
        case "fortran_order" -> fortran = bool();
        case "shape" -> {
          shapeAt = at;
          shape = tuple();
        }
        default ->
            throw wrong(
                keyAt,
                "the key is %s; allowed are \"descr\", \"fortran_order\", \"shape\""
                    .formatted(Text.quote(key)));
      }
    }
    skipBlanks();
    if (at < text.length) {
      throw wrong(at, "there is text after the dictionary");
    }
    for (String key : new String[] {"descr", "fortran_order", "shape"}) {
      if (!seen.contains(key)) {
        throw wrong(0, "the dictionary lacks the key \"%s\"".formatted(key));
      }
    }
    ElementType type = type(descr, descrAt);
    long data = (long) start + text.length;
    long bytes = Layout.byteCount(shape, type.bytes);
    if (bytes < 0) {
      throw wrong(shapeAt, "shape %s overflows".formatted(Layout.show(shape)));
    }
    if (bytes != size - data) {
      throw wrong(
          shapeAt,
          "shape %s of %s takes %d bytes, but %d are there from byte %d on"
              .formatted(Layout.show(shape), descr, bytes, size - data, data));
    }
    return Layout.of(file, descr, type, descr.startsWith(">"), data, shape, fortran);
  }

  private ElementType type(String descr, int descrAt) {
    boolean ordered = !descr.isEmpty() && "<>=|".indexOf(descr.charAt(0)) >= 0;
    ElementType type =
        switch (ordered ? descr.substring(1) : descr) {
          case "f8" -> ElementType.F64;
          case "f4" -> ElementType.F32;
          case "f2" -> ElementType.F16;
          case "i1" -> ElementType.I8;
          case "i2" -> ElementType.I16;
          case "i4" -> ElementType.I32;
          case "i8" -> ElementType.I64;
          case "u1" -> ElementType.U8;
          case "u2" -> ElementType.U16;
          case "u4" -> ElementType.U32;
          case "u8" -> ElementType.U64;
          case "b1" -> ElementType.BOOL;
          case "V2", "bfloat16" ->
              throw wrong(
                  descrAt,
                  "descr is %s, and .npy has no bfloat16: use a safetensors file"
                      .formatted(Text.quote(descr)));
          default ->
              throw wrong(
                  descrAt,
                  "descr is %s; allowed are f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 b1 after < or >"
                      .formatted(Text.quote(descr)));
        };
    if (descr.startsWith("|") && type.bytes > 1) {
      throw wrong(descrAt, "descr is %s, without a byte order".formatted(Text.quote(descr)));
    }
    return type;
  }

  private void skipBlanks() {
    while (at < text.length && (text[at] == ' ' || (text[at] >= '\t' && text[at] <= '\r'))) {
      at++;
    }
  }

  /** Steps over a character, if it is the next one. */
  private boolean next(char wanted) {
    skipBlanks();
    boolean there = at < text.length && text[at] == wanted;
    at += there ? 1 : 0;
    return there;
  }

  private void expect(char wanted) {
    if (!next(wanted)) {
      throw wrong(at, "\"%c\" is expected, and not %s".formatted(wanted, here()));
    }
  }

  private String here() {
    return at == text.length ? "the header's end" : Text.quote(latin1(at, at + 1));
  }

  private String latin1(int from, int to) {
    return new String(text, from, to - from, StandardCharsets.ISO_8859_1);
  }

  private String string(String what) {
    if (at == text.length || (text[at] != '\'' && text[at] != '"')) {
      throw wrong(at, "%s is expected, and not %s".formatted(what, here()));
    }
    byte quote = text[at];
    int from = ++at;
    while (at < text.length && text[at] != quote) {
      if (text[at] < ' ' || text[at] == '\\') {
        throw wrong(at, "a string holds %s".formatted(here()));
      }
      at++;
    }
    if (at == text.length) {
      throw wrong(from - 1, "a string does not end");
    }
    return latin1(from, at++);
  }

  private String word() {
    int from = at;
    while (at < text.length && (Character.isLetterOrDigit(text[at]) || text[at] == '-')) {
      at++;
    }
    return latin1(from, at);
  }

  private boolean bool() {
    int from = at;
    return switch (word()) {
      case "True" -> true;
      case "False" -> false;
      default -> {
        at = from;
        throw wrong(
            from, "fortran_order is neither True nor False; it begins with %s".formatted(here()));
      }
    };
  }

  private long[] tuple() {
    if (!next('(')) {
      throw wrong(at, "shape is no tuple: \"(\" is expected, and not %s".formatted(here()));
    }
    long[] shape = new long[Layout.MAX_DIMENSIONS];
    int count = 0;
    boolean comma = true;
    while (!next(')')) {
      if (!comma) {
        throw wrong(at, "\",\" or \")\" is expected in shape, and not %s".formatted(here()));
      }
      if (count == shape.length) {
        throw wrong(at, "shape has more than %d dimensions".formatted(shape.length));
      }
      shape[count++] = dimension();
      comma = next(',');
    }
    if (count == 1 && !comma) {
      throw wrong(at, "shape is no tuple: a tuple of one ends with a comma");
    }
    return Arrays.copyOf(shape, count);
  }

  private long dimension() {
    int from = at;
    String word = word();
    // Python 2 wrote long integers with an L.
    String digits = word.endsWith("L") ? word.substring(0, word.length() - 1) : word;
    boolean negative = digits.startsWith("-");
    String magnitude = negative ? digits.substring(1) : digits;
    if (magnitude.isEmpty() || !magnitude.chars().allMatch(c -> c >= '0' && c <= '9')) {
      throw wrong(
          from,
          "shape holds %s, which is no dimension"
              .formatted(word.isEmpty() ? here() : Text.quote(word)));
    }
    if (negative) {
      throw wrong(from, "shape holds the negative dimension %s".formatted(Text.line(digits, 40)));
    }
    try {
      return Long.parseLong(magnitude);
    } catch (NumberFormatException e) {
      throw wrong(from, "shape overflows: it holds %s".formatted(Text.line(digits, 40)));
    }
  }

  private UsageException wrong(int position, String what) {
    return new UsageException("%s: header, byte %d: %s".formatted(file, start + position, what));
  }
}
