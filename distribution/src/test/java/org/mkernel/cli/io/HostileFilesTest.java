package org.mkernel.cli.io;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_16LE;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;
import static org.mkernel.cli.io.TestFiles.dictionary;
import static org.mkernel.cli.io.TestFiles.npy;
import static org.mkernel.cli.io.TestFiles.safetensors;
import static org.mkernel.cli.io.TestFiles.tensor;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.Random;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.mkernel.api.UsageException;

/** Files that are malformed, truncated or made to hurt: one line says what is wrong and where. */
class HostileFilesTest {
  private static final byte[] NONE = {};

  @TempDir private Path folder;

  private static Arguments npyCase(String says, byte[] file) {
    return Arguments.of(says, "a.npy", file);
  }

  private static Arguments npyCase(String says, String header) {
    return npyCase(says, npy(1, header, new byte[24]));
  }

  private static Arguments shape(String says, String shape) {
    return npyCase(says, dictionary("<f4", false, shape));
  }

  private static Arguments descr(String says, String descr) {
    return npyCase(says, dictionary(descr, false, "(6,)"));
  }

  static Stream<Arguments> npyFiles() {
    String good = dictionary("<f4", false, "(6,)");
    byte[] file = npy(1, good, new byte[24]);
    return Stream.of(
        npyCase("no .npy file", NONE),
        npyCase("no .npy file", "PK\3\4............".getBytes(UTF_8)),
        npyCase("no .npy file", Arrays.copyOf(file, 5)),
        npyCase("truncated: 6 bytes, but a header takes at least 10", Arrays.copyOf(file, 6)),
        npyCase("truncated: 9 bytes", Arrays.copyOf(file, 9)),
        npyCase("truncated: 11 bytes", Arrays.copyOf(npy(2, good, NONE), 11)),
        npyCase("version 4.0 at byte 6", npy(4, good, NONE)),
        npyCase("version 0.0 at byte 6", npy(0, good, NONE)),
        npyCase("length at byte 8 is", Arrays.copyOf(file, 60)),
        npyCase("is 65535, but only", npy(1, 65535, good, new byte[24])),
        npyCase("is 4294967295, but only", npy(2, -1, good, new byte[24])),
        npyCase("at most 65536", npy(2, " ".repeat(70_000), NONE)),
        npyCase("takes 24 bytes, but 23 are there", Arrays.copyOf(file, file.length - 1)),
        npyCase("takes 24 bytes, but 25 are there", Arrays.copyOf(file, file.length + 1)),
        npyCase("byte 10: \"{\" is expected, and not the header's end", ""),
        npyCase("\"{\" is expected", "[1]"),
        npyCase("lacks the key \"descr\"", "{}"),
        npyCase("lacks the key \"shape\"", "{'descr': '<f4', 'fortran_order': False}"),
        npyCase("lacks the key \"fortran_order\"", "{'descr': '<f4', 'shape': (6,)}"),
        npyCase("the key \"descr\" is there twice", "{'descr': '<f4', 'descr': '<f4'}"),
        npyCase("the key is \"evil\"; allowed are", "{'evil': 1}"),
        npyCase("a string holds \"\\u{85}\"", "{'evil\u0085': 1}"),
        npyCase("a string holds", "{'de\\x41': 1}"),
        npyCase("a string holds", "{'a\nb': 1}"),
        npyCase("a string does not end", "{'descr"),
        npyCase("a key is expected", "{1: 2}"),
        npyCase("\":\" is expected", "{'descr' '<f4'}"),
        npyCase("text after the dictionary", good + "x"),
        npyCase("text after the dictionary", good + "\0"),
        npyCase("\",\" is expected", "{'shape': (1,) 'descr'"),
        npyCase("a type as a string is expected", "{'descr': 4}"),
        npyCase("a structured type", "{'descr': [('x', '<f4')]}"),
        npyCase("neither True nor False", "{'fortran_order': Maybe}"),
        npyCase("neither True nor False", "{'fortran_order': "),
        descr("descr is \"|O\"", "|O"),
        descr("descr is \"<c8\"", "<c8"),
        descr("descr is \"<U4\"", "<U4"),
        descr("descr is \"\"", ""),
        descr("descr is \"<\"", "<"),
        descr("descr is \"<f16\"", "<f16"),
        descr("without a byte order", "|f4"),
        descr("use a safetensors file", "|V2"),
        descr("use a safetensors file", "bfloat16"),
        descr("…\"", "<f4".repeat(1000)),
        shape("shape is no tuple", "6"),
        shape("shape is no tuple", "[6]"),
        shape("a tuple of one ends with a comma", "(6)"),
        shape("negative dimension -6", "(-6,)"),
        shape("negative dimension -1", "(-1, -6)"),
        shape("is expected in shape, and not \".\"", "(6.0,)"),
        shape("no dimension", "(x,)"),
        shape("no dimension", "(,)"),
        shape("no dimension", "(-,)"),
        shape("no dimension", "(1,,2)"),
        shape("no dimension", "((6,),)"),
        shape("no dimension", "(".repeat(10_000)),
        shape("\",\" or \")\" is expected in shape", "(1 2)"),
        shape("no dimension", "(6,"),
        shape("overflows", "(9223372036854775808,)"),
        shape("overflows", "(" + "9".repeat(20_000) + ",)"),
        shape("overflows", "(4294967296, 4294967296, 4)"),
        shape("overflows", "(4611686018427387905, 4)"),
        shape("overflows", "(9223372036854775807, 9223372036854775807)"),
        shape("takes 4611686018427387904 bytes", "(1152921504606846976,)"),
        shape("more than 64 dimensions", "(" + "1,".repeat(65) + ")"),
        shape("takes 28 bytes, but 24", "(7,)"),
        npyCase("no elements", npy(1, dictionary("<f4", false, "(0,)"), NONE)),
        npyCase("no elements", npy(1, dictionary("<f4", true, "(9223372036854775807,0)"), NONE)));
  }

  private static Arguments safe(String says, String json) {
    return Arguments.of(says, "a.safetensors#x", safetensors(json, new byte[8]));
  }

  private static Arguments safe(String says, byte[] file) {
    return Arguments.of(says, "a.safetensors#x", file);
  }

  private static Arguments one(String says, String dtype, String shape, String offsets) {
    return safe(says, "{" + tensor("x", dtype, shape, offsets) + "}");
  }

  static Stream<Arguments> safetensorsFiles() {
    String x = tensor("x", "F32", "[2]", "[0,8]");
    byte[] file = safetensors("{" + x + "}", new byte[8]);
    byte[] text = ("{" + x + "}").getBytes(UTF_8);
    String many =
        IntStream.range(0, 500)
            .mapToObj(i -> tensor("t" + i, "F32", "[0]", "[0,0]"))
            .collect(Collectors.joining(",", "{", ","));
    return Stream.of(
        safe("truncated: 0 bytes", NONE),
        safe("truncated: 7 bytes", Arrays.copyOf(file, 7)),
        safe("length at byte 0 is", Arrays.copyOf(file, 30)),
        safe("is 18446744073709551615, but only", safetensors(-1, text, NONE)),
        safe("is 9223372036854775807, but only", safetensors(Long.MAX_VALUE, text, NONE)),
        safe("byte 8: \"{\" is expected", safetensors("", NONE)),
        safe("byte 8: \"{\" is expected", safetensors(" {}", NONE)),
        safe("byte 8: \"{\" is expected", safetensors("\uFEFF{}", NONE)),
        safe("beyond the file: 7 bytes", Arrays.copyOf(file, file.length - 1)),
        safe("9 bytes of data are there from byte", Arrays.copyOf(file, file.length + 1)),
        safe("control character 0", safetensors(9, "{\0\"\0x\0\"\0}\0".getBytes(UTF_8), NONE)),
        safe("control character 0", safetensors(8, "{\"x\"}".getBytes(UTF_16LE), NONE)),
        safe(
            "byte 10: this is not UTF-8",
            safetensors(5, "{\"\u00ff\":".getBytes(ISO_8859_1), NONE)),
        safe("not UTF-8", safetensors(6, "{\"\u00ed\u00a0\u0080\"".getBytes(ISO_8859_1), NONE)),
        safe("not UTF-8", safetensors(5, "{\"\u00c0\u0080\"".getBytes(ISO_8859_1), NONE)),
        safe("not UTF-8", safetensors(3, "{\"\u00c3".getBytes(ISO_8859_1), NONE)),
        safe("header, byte", "{"),
        safe("header, byte", "{\"x\""),
        safe("header, byte", "{\"x\":"),
        safe("header, byte", "{" + x),
        safe("header, byte", "{" + x + ",}"),
        safe("text after the object", "{" + x + "}{}"),
        safe("header, byte", "{" + x + "}}"),
        safe("header, byte", "{x:1}"),
        safe("header, byte", "{'x':1}"),
        safe("header, byte", "{/**/" + x + "}"),
        safe("\"x\" as an object is expected", "{\"x\":[]}"),
        safe("\"x\" as an object is expected", "{\"x\":null}"),
        safe("\"x\" as an object is expected", "{\"x\":" + "[".repeat(100_000)),
        safe("has the key \"a\"", "{\"x\":" + "{\"a\":".repeat(100_000)),
        safe("__metadata__ as an object", "{\"__metadata__\":1}"),
        safe("a string at the key \"a\"", "{\"__metadata__\":{\"a\":1}}"),
        safe("a string at the key \"a\"", "{\"__metadata__\":{\"a\":" + "[".repeat(100_000)),
        safe("of __metadata__ is there twice", "{\"__metadata__\":{\"a\":\"\",\"a\":\"\"}}"),
        safe("the key \"x\" is there twice", "{" + x + "," + x + "}"),
        safe("is there twice", "{" + x + "," + x.replace("\"x\"", "\"\\u0078\"") + "}"),
        safe("the key \"dtype\" twice", "{\"x\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}"),
        safe("the key \"shape\" twice", "{\"x\":{\"shape\":[],\"shape\":[]}}"),
        safe("twice", "{\"x\":{\"data_offsets\":[],\"data_offsets\":[]}}"),
        safe("lacks the key \"dtype\"", "{\"x\":{}}"),
        safe("lacks the key \"shape\"", "{\"x\":{\"dtype\":\"F32\"}}"),
        safe("lacks the key \"data_offsets\"", "{\"x\":{\"dtype\":\"F32\",\"shape\":[2]}}"),
        safe("dtype of \"x\" as a string", "{\"x\":{\"dtype\":5}}"),
        one("the dtype of \"x\" is \"F8_E5M2\"; allowed are F64", "F8_E5M2", "[8]", "[0,8]"),
        one("the dtype of \"x\" is \"\\u{1b}\"", "\\u001b", "[8]", "[0,8]"),
        one("shape of \"x\" as an array", "F32", "2", "[0,8]"),
        one("no whole number", "F32", "[2.0]", "[0,8]"),
        one("no whole number", "F32", "[\"2\"]", "[0,8]"),
        one("no whole number", "F32", "[[2]]", "[0,8]"),
        one("no whole number", "F32", "[null]", "[0,8]"),
        one("no whole number", "F32", "[2e0]", "[0,8]"),
        one("header, byte", "F32", "[02]", "[0,8]"),
        one("header, byte", "F32", "[NaN]", "[0,8]"),
        one("negative number -2", "F32", "[-2]", "[0,8]"),
        one("negative number -1", "F32", "[-1,-2]", "[0,8]"),
        one("overflows", "F32", "[9223372036854775808]", "[0,8]"),
        one("header, byte", "F32", "[" + "9".repeat(100_000) + "]", "[0,8]"),
        one("overflows: (4294967296, 4294967296)", "F32", "[4294967296,4294967296]", "[0,8]"),
        one("overflows", "F32", "[4611686018427387905,4]", "[0,8]"),
        one("more than 64 numbers", "F32", "[" + "1,".repeat(64) + "2]", "[0,8]"),
        one("takes 12 bytes as F32 of (3)", "F32", "[3]", "[0,8]"),
        one("takes 8 bytes as F32 of (2)", "F32", "[2]", "[0,4]"),
        one("has 0 numbers, not 2", "F32", "[2]", "[]"),
        one("has 1 numbers, not 2", "F32", "[2]", "[0]"),
        one("more than 2 numbers", "F32", "[2]", "[0,8,8]"),
        one("negative number -8", "F32", "[2]", "[-8,0]"),
        one("run backwards: [8, 0]", "F32", "[2]", "[8,0]"),
        one("beyond the file: 8 bytes", "F32", "[2]", "[8,16]"),
        one("beyond the file", "F32", "[2]", "[0,9223372036854775807]"),
        one("overflows", "F32", "[2]", "[0,18446744073709551615]"),
        one("covers the data from 0 to 4", "F32", "[1]", "[4,8]"),
        one("the header's tensors take 4", "F32", "[1]", "[0,4]"),
        safe(
            "of \"x\" and \"y\" overlap at 4",
            "{" + tensor("y", "F32", "[1]", "[4,8]") + "," + x + "}"),
        safe("overlap at 0", "{" + tensor("y", "F32", "[2]", "[0,8]") + "," + x + "}"),
        safe(
            "covers the data from 2 to 4",
            "{"
                + tensor("x", "F16", "[1]", "[0,2]")
                + ","
                + tensor("y", "I32", "[1]", "[4,8]")
                + "}"),
        safe("no elements", safetensors("{" + tensor("x", "F32", "[0]", "[0,0]") + "}", NONE)),
        safe("no tensor is named \"x\"; the file has none", safetensors("{}", NONE)),
        safe(
            "no tensor is named \"x\"; the file has X, y",
            "{"
                + tensor("X", "F32", "[1]", "[0,4]")
                + ","
                + tensor("y", "F32", "[1]", "[4,8]")
                + "}"),
        safe("and 481 more", many + tensor("y", "F32", "[2]", "[0,8]") + "}"),
        safe("\\u{a}", "{" + tensor("a\\nb", "F32", "[2]", "[0,8]") + "}"),
        safe("header, byte", "{\"" + "n".repeat(100_000) + "\":1}"),
        Arguments.of(
            "must be named, as FILE.safetensors#TENSOR; the file has x", "a.safetensors", file),
        Arguments.of("must be named", "a.safetensors#", file));
  }

  @ParameterizedTest
  @MethodSource({"npyFiles", "safetensorsFiles"})
  void saysWhatIsWrong(String says, String spec, byte[] bytes) throws IOException {
    int hash = spec.indexOf('#');
    Path file = folder.resolve(hash < 0 ? spec : spec.substring(0, hash));
    Files.write(file, bytes);
    assertTimeoutPreemptively(
        Duration.ofSeconds(10),
        () ->
            assertThatThrownBy(() -> TensorFile.open(folder.resolve(spec).toString()))
                .isInstanceOf(UsageException.class)
                .satisfies(e -> checkMessage(file, e.getMessage()))
                .hasMessageContaining(says));
  }

  private static void checkMessage(Path file, String message) {
    assertThat(message).startsWith(file + ": ").hasSizeLessThan(4000);
    assertThat(message.chars().filter(Character::isISOControl).count()).isZero();
  }

  @Test
  void refusesAHugeHeaderUnread() throws IOException {
    // A sparse file: its size is real, its header is not.
    Path file = folder.resolve("a.safetensors");
    try (var sparse = new java.io.RandomAccessFile(file.toFile(), "rw")) {
      sparse.write(ByteBuffer.allocate(9).order(ByteOrder.LITTLE_ENDIAN).putLong(1L << 33).array());
      sparse.setLength(1L << 34);
    }
    assertThatThrownBy(() -> TensorFile.open(file + "#x"))
        .isInstanceOf(UsageException.class)
        .hasMessageContaining("is 8589934592; at most 33554432 can be read");
  }

  @Test
  void refusesWhatIsNoFile() throws Exception {
    assertThatThrownBy(() -> TensorFile.open("a.txt"))
        .isInstanceOf(UsageException.class)
        .hasMessage(
            "a.txt: unknown kind of file; allowed are FILE.npy and FILE.safetensors#TENSOR");
    assertThatThrownBy(() -> TensorFile.open("a\n.npy"))
        .isInstanceOf(UsageException.class)
        .hasMessage("a\\u{a}.npy: cannot be read: no such file or folder");
    assertThatThrownBy(() -> TensorFile.open("a\0.npy"))
        .isInstanceOf(UsageException.class)
        .hasMessageContaining("no valid path");
    Path directory = Files.createDirectory(folder.resolve("d.npy"));
    assertThatThrownBy(() -> TensorFile.open(directory.toString()))
        .isInstanceOf(UsageException.class)
        .hasMessageContaining("not a regular file");
    assertThatThrownBy(() -> TensorFile.open(directory + "/x/a.npy"))
        .isInstanceOf(UsageException.class)
        .hasMessageContaining("no such file");
    assertThatThrownBy(() -> TensorFile.open("x".repeat(300) + ".npy"))
        .isInstanceOf(UsageException.class)
        .hasMessageContaining("too long");
  }

  @Test
  void doesNotWaitForAPipe() throws Exception {
    Path pipe = folder.resolve("p.npy");
    Assumptions.assumeTrue(
        Files.isExecutable(Path.of("/usr/bin/mkfifo"))
            && new ProcessBuilder("/usr/bin/mkfifo", pipe.toString()).start().waitFor() == 0,
        "no mkfifo");
    assertTimeoutPreemptively(
        Duration.ofSeconds(10),
        () ->
            assertThatThrownBy(() -> TensorFile.open(pipe.toString()))
                .isInstanceOf(UsageException.class)
                .hasMessageContaining("not a regular file"));
  }

  /** Mutates sound files: each is read in full, or ends in a UsageException of one line. */
  @Test
  void mutatedFilesAreReadOrRefused() throws IOException {
    Random random = new Random(20_260_101);
    byte[] data = new byte[48];
    random.nextBytes(data);
    String metadata = "\"__metadata__\":{\"format\":\"pt\",\"é\":\"\\u00e9\"}";
    byte[][] seeds = {
      npy(1, dictionary("<f4", false, "(3, 4)"), data),
      npy(2, dictionary(">i2", true, "(2, 3, 4)"), data),
      npy(3, dictionary("|u1", false, "(48,)"), data),
      npy(1, dictionary("<u8", true, "(2, 3)"), data),
      safetensors("{" + metadata + "," + tensor("x", "F32", "[3,4]", "[0,48]") + "}  ", data),
      safetensors(
          "{%s,%s,%s}"
              .formatted(
                  tensor("y", "BF16", "[2,2]", "[40,48]"),
                  tensor("x", "I64", "[5]", "[0,40]"),
                  tensor("z", "F8_E4M3", "[0]", "[40,40]")),
          data)
    };
    int read = 0;
    int refused = 0;
    for (int i = 0; i < 20_000; i++) {
      int kind = i % seeds.length;
      byte[] bytes = seeds[kind];
      for (int changes = 1 + random.nextInt(3); changes > 0; changes--) {
        bytes = mutate(bytes, random);
      }
      Path file = folder.resolve(kind < 4 ? "a.npy" : "a.safetensors");
      Files.write(file, bytes);
      try (TensorFile tensor = TensorFile.open(kind < 4 ? file.toString() : file + "#x")) {
        // Bounded by the file: each element is there.
        assertThat(tensor.rows() * tensor.columns()).isBetween(1L, (long) bytes.length);
        double[] row = new double[(int) tensor.columns()];
        for (long r = 0; r < tensor.rows(); r++) {
          tensor.read(r, 0, row.length, row, 0);
        }
        read++;
      } catch (UsageException e) {
        checkMessage(file, String.valueOf(e.getMessage()));
        refused++;
      } catch (RuntimeException | Error e) {
        throw new AssertionError("mutant " + i + ": " + Arrays.toString(bytes), e);
      }
    }
    assertThat(read).isGreaterThan(1000);
    assertThat(refused).isGreaterThan(5000);
  }

  private static byte[] mutate(byte[] bytes, Random random) {
    if (bytes.length < 2) {
      return new byte[] {'{', '}', 0};
    }
    // Mostly the header, where the decisions are taken.
    int at = random.nextInt(random.nextInt(4) == 0 ? bytes.length : Math.min(bytes.length, 180));
    int count = Math.min(1 + random.nextInt(8), bytes.length - at);
    byte[] changed = bytes.clone();
    byte[] before = Arrays.copyOf(bytes, at);
    byte[] after = Arrays.copyOfRange(bytes, at, bytes.length);
    String special = "{}[]()\"':,-0123456789LTF<>|\\ \n\0#e.";
    switch (random.nextInt(8)) {
      case 0 -> changed[at] ^= (byte) (1 << random.nextInt(8));
      case 1 -> changed[at] = (byte) special.charAt(random.nextInt(special.length()));
      case 2 -> changed[at] = (byte) random.nextInt();
      case 3 -> {
        return before;
      }
      case 4 -> {
        return TestFiles.join(before, Arrays.copyOfRange(bytes, at + count, bytes.length));
      }
      case 5 -> {
        return TestFiles.join(before, Arrays.copyOf(after, count), after);
      }
      case 6 -> {
        long[] longs = {0, 1, -1, Long.MAX_VALUE, Long.MIN_VALUE, 1L << 31, 1L << 32, 40, 48};
        ByteBuffer wide = ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN);
        wide.putLong(longs[random.nextInt(longs.length)]);
        System.arraycopy(wide.array(), 0, changed, at, count);
      }
      default -> {
        String[] texts = {
          "9223372036854775807", "-1", "4294967296", "((((", "[[[[{{{{", "\"x\":", "\\u0000", "é"
        };
        return TestFiles.join(before, texts[random.nextInt(texts.length)].getBytes(UTF_8), after);
      }
    }
    return changed;
  }
}
