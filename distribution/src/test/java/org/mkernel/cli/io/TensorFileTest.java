package org.mkernel.cli.io;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.mkernel.cli.io.TestFiles.dictionary;
import static org.mkernel.cli.io.TestFiles.encode;
import static org.mkernel.cli.io.TestFiles.npy;
import static org.mkernel.cli.io.TestFiles.safetensors;
import static org.mkernel.cli.io.TestFiles.tensor;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.mkernel.api.UsageException;

class TensorFileTest {
  private static final Map<ElementType, String> NPY =
      new TreeMap<>(
          Map.ofEntries(
              Map.entry(ElementType.F64, "f8"),
              Map.entry(ElementType.F32, "f4"),
              Map.entry(ElementType.F16, "f2"),
              Map.entry(ElementType.I8, "i1"),
              Map.entry(ElementType.I16, "i2"),
              Map.entry(ElementType.I32, "i4"),
              Map.entry(ElementType.I64, "i8"),
              Map.entry(ElementType.U8, "u1"),
              Map.entry(ElementType.U16, "u2"),
              Map.entry(ElementType.U32, "u4"),
              Map.entry(ElementType.U64, "u8"),
              Map.entry(ElementType.BOOL, "b1")));

  @TempDir private Path folder;

  /** 24 values that the type holds exactly, its extremes among them. */
  private static double[] values(ElementType type) {
    double[] values = new double[24];
    for (int i = 0; i < values.length; i++) {
      values[i] =
          switch (type) {
            case BOOL -> i * 5 % 3 % 2;
            case U8, U16, U32, U64 -> i * 7;
            default -> i * 5 - 60;
          };
    }
    double[] extremes =
        switch (type) {
          case F64 -> new double[] {Math.PI, Double.MAX_VALUE, Double.MIN_VALUE, -0.0};
          case F32 -> new double[] {Float.MAX_VALUE, Float.MIN_VALUE, -0.0, 1 + 0x1p-23};
          case F16 -> new double[] {65504, 0x1p-24, -0.0, Double.NEGATIVE_INFINITY};
          case BF16 -> new double[] {0x1.fep127, 0x1p-133, -0.0, Double.NaN};
          case I8 -> new double[] {-128, 127};
          case I16 -> new double[] {-32768, 32767};
          case I32 -> new double[] {-0x1p31, 0x1p31 - 1};
          case I64 -> new double[] {-0x1p63, 0x1p53, 0x1p62 + 0x1p10};
          case U8 -> new double[] {255};
          case U16 -> new double[] {65535};
          case U32 -> new double[] {0x1p32 - 1};
          case U64 -> new double[] {0x1p63, 0x1p64 - 0x1p11};
          case BOOL -> new double[] {1, 0};
        };
    System.arraycopy(extremes, 0, values, 11, extremes.length);
    return values;
  }

  private static byte[] bytes(ElementType type, double[] values, ByteOrder order) {
    var bytes = new ByteArrayOutputStream();
    for (double value : values) {
      bytes.writeBytes(encode(type, value, order));
    }
    return bytes.toByteArray();
  }

  private String write(String name, byte[] bytes) throws IOException {
    return Files.write(folder.resolve(name), bytes).toString();
  }

  /** Reads everything, by whole rows, and by pieces that must agree with them. */
  private static double[] all(TensorFile tensor) {
    int columns = Math.toIntExact(tensor.columns());
    int rows = Math.toIntExact(tensor.rows());
    double[] all = new double[rows * columns];
    for (int row = 0; row < rows; row++) {
      tensor.read(row, 0, columns, all, row * columns);
      for (int column = 0; column < columns; column++) {
        double[] one = {-1, -1, -1};
        tensor.read(row, column, 1, one, 1);
        assertThat(one).containsExactly(-1, all[row * columns + column], -1);
      }
    }
    return all;
  }

  @Test
  void readsEveryTypeOrderAndShapeOfNpy() throws IOException {
    int files = 0;
    for (ElementType type : NPY.keySet()) {
      double[] values = values(type);
      for (ByteOrder order : new ByteOrder[] {ByteOrder.LITTLE_ENDIAN, ByteOrder.BIG_ENDIAN}) {
        for (int version = 1; version <= 3; version++) {
          String descr = (order == ByteOrder.BIG_ENDIAN ? ">" : "<") + NPY.get(type);
          for (int[] shape : new int[][] {{24}, {4, 6}, {2, 3, 4}, {1, 2, 1, 12}, {24, 1}}) {
            for (boolean fortran : new boolean[] {false, true}) {
              String text = java.util.Arrays.toString(shape).replace('[', '(').replace("]", ",)");
              double[] stored = fortran ? fortran(values, shape) : values;
              String file =
                  write(
                      "a.npy",
                      npy(version, dictionary(descr, fortran, text), bytes(type, stored, order)));
              try (TensorFile tensor = TensorFile.open(file)) {
                assertThat(tensor.columns()).isEqualTo(shape[shape.length - 1]);
                assertThat(tensor.rows()).isEqualTo(24 / shape[shape.length - 1]);
                assertThat(tensor.dtype()).isEqualTo(descr);
                assertThat(all(tensor)).as(descr + text + fortran).containsExactly(values);
              }
              files++;
            }
          }
        }
      }
    }
    assertThat(files).isEqualTo(12 * 2 * 3 * 5 * 2);
  }

  /** The values in the order in which Fortran stores them: the first index runs fastest. */
  private static double[] fortran(double[] values, int[] shape) {
    double[] stored = new double[values.length];
    for (int i = 0; i < values.length; i++) {
      int rest = i;
      int[] index = new int[shape.length];
      for (int d = shape.length - 1; d >= 0; d--) {
        index[d] = rest % shape[d];
        rest /= shape[d];
      }
      int at = 0;
      for (int d = shape.length - 1; d >= 0; d--) {
        at = at * shape[d] + index[d];
      }
      stored[at] = values[i];
    }
    return stored;
  }

  @ParameterizedTest
  @EnumSource(ElementType.class)
  void readsEveryTypeOfSafetensors(ElementType type) throws IOException {
    double[] values = values(type);
    byte[] data = bytes(type, values, ByteOrder.LITTLE_ENDIAN);
    int end = 3 + data.length;
    // Not in the order of their offsets, unaligned, and beside a type that is not read.
    String json =
        "{\"__metadata__\":{\"format\":\"pt\"},%s,%s,%s} "
            .formatted(
                tensor("x", type.name(), "[2,3,4]", "[3," + end + "]"),
                tensor("a#b/é", "F8_E4M3", "[3]", "[0,3]"),
                tensor("none", "F32", "[0,5]", "[%d,%d]".formatted(end, end)));
    String file = write("a.safetensors", safetensors(json, TestFiles.join(new byte[3], data)));
    try (TensorFile tensor = TensorFile.open(file + "#x")) {
      assertThat(tensor.rows()).isEqualTo(6);
      assertThat(tensor.columns()).isEqualTo(4);
      assertThat(tensor.dtype()).isEqualTo(type.name());
      assertThat(all(tensor)).containsExactly(values);
    }
  }

  @Test
  void readsWhatNumpyWrote() throws IOException {
    byte[] plain =
        Base64.getDecoder()
            .decode(
                "k05VTVBZAQB2AHsnZGVzY3InOiAnPGY0JywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3No"
                    + "YXBlJzogKDIsIDMpLCB9ICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAg"
                    + "ICAgICAgICAgICAgICAgICAgIAoAAAAAAACAPwAAAEAAAEBAAACAQAAAoEA=");
    try (TensorFile tensor = TensorFile.open(write("c.npy", plain))) {
      assertThat(tensor.rows()).isEqualTo(2);
      assertThat(all(tensor)).containsExactly(0, 1, 2, 3, 4, 5);
    }
    byte[] fortran =
        Base64.getDecoder()
            .decode(
                "k05VTVBZAQB2AHsnZGVzY3InOiAnPmkyJywgJ2ZvcnRyYW5fb3JkZXInOiBUcnVlLCAnc2hh"
                    + "cGUnOiAoMiwgMywgNCksIH0gICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAg"
                    + "ICAgICAgICAgICAgICAgICAgIAoAAAAMAAQAEAAIABQAAQANAAUAEQAJABUAAgAOAAYAEgAK"
                    + "ABYAAwAPAAcAEwALABc=");
    try (TensorFile tensor = TensorFile.open(write("f.npy", fortran))) {
      assertThat(tensor.rows()).isEqualTo(6);
      assertThat(tensor.dtype()).isEqualTo(">i2");
      double[] all = all(tensor);
      for (int i = 0; i < 24; i++) {
        assertThat(all[i]).isEqualTo(i);
      }
    }
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = ';',
      value = {"();1;1", "(3,);1;3", "(3L, 1L);3;1", "(1,3);1;3", "( 1 , 3 , );1;3"})
  void readsShapes(String shape, long rows, long columns) throws IOException {
    byte[] data = new byte[(int) (rows * columns)];
    String file = write("a.npy", npy(1, dictionary("|u1", false, shape), data));
    try (TensorFile tensor = TensorFile.open(file)) {
      assertThat(tensor.rows()).isEqualTo(rows);
      assertThat(tensor.columns()).isEqualTo(columns);
    }
  }

  @Test
  void refusesIntegersThatNoDoubleHolds() throws IOException {
    for (String descr : new String[] {"<i8", "<u8"}) {
      for (long value : new long[] {(1L << 53) + 1, Long.MAX_VALUE, -(1L << 53) - 1}) {
        byte[] data =
            ByteBuffer.allocate(16)
                .order(ByteOrder.LITTLE_ENDIAN)
                .putLong(7)
                .putLong(value)
                .array();
        String file = write("a.npy", npy(1, dictionary(descr, false, "(2, 1)"), data));
        try (TensorFile tensor = TensorFile.open(file)) {
          double[] out = new double[1];
          tensor.read(0, 0, 1, out, 0);
          assertThat(out[0]).isEqualTo(7);
          assertThatThrownBy(() -> tensor.read(1, 0, 1, out, 0))
              .isInstanceOf(UsageException.class)
              .hasMessageContaining("row 1, column 0")
              .hasMessageContaining(
                  descr.equals("<u8") ? Long.toUnsignedString(value) : Long.toString(value));
        }
      }
    }
  }

  @Test
  void refusesARangeOutsideTheTensor() throws IOException {
    String file = write("a.npy", npy(1, dictionary("|u1", false, "(2, 3)"), new byte[6]));
    TensorFile tensor = TensorFile.open(file);
    double[] out = new double[3];
    assertThatThrownBy(() -> tensor.read(2, 0, 1, out, 0))
        .isInstanceOf(IndexOutOfBoundsException.class);
    assertThatThrownBy(() -> tensor.read(-1, 0, 1, out, 0))
        .isInstanceOf(IndexOutOfBoundsException.class);
    assertThatThrownBy(() -> tensor.read(0, 1, 3, out, 0))
        .isInstanceOf(IndexOutOfBoundsException.class);
    assertThatThrownBy(() -> tensor.read(0, 0, 3, out, 1))
        .isInstanceOf(IndexOutOfBoundsException.class);
    tensor.close();
    tensor.close();
    assertThatThrownBy(() -> tensor.read(0, 0, 1, out, 0))
        .isInstanceOf(IllegalStateException.class);
  }

  @Test
  void saysThatTheFileBecameShorter() throws IOException {
    int bytes = 1 << 20;
    String shape = "(1, " + bytes + ")";
    String file = write("a.npy", npy(1, dictionary("|u1", false, shape), new byte[bytes]));
    try (TensorFile tensor = TensorFile.open(file)) {
      try (var shorter = new RandomAccessFile(file, "rw")) {
        shorter.setLength(100);
      }
      assertThatThrownBy(() -> tensor.read(0, 0, bytes, new double[bytes], 0))
          .isInstanceOf(UsageException.class)
          .hasMessageContaining("became shorter");
    }
  }

  @Test
  void aTensorNameMayHoldAnything() throws IOException {
    byte[] file =
        safetensors("{" + tensor("a#b.npy", "U8", "[1]", "[0,1]") + "}", "x".getBytes(UTF_8));
    try (TensorFile tensor = TensorFile.open(write("a#.safetensors", file) + "#a#b.npy")) {
      assertThat(all(tensor)).containsExactly('x');
    }
  }
}
