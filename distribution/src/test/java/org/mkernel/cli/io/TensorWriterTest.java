package org.mkernel.cli.io;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Random;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.mkernel.api.DType;
import org.mkernel.api.UnavailableException;
import org.mkernel.api.UsageException;

class TensorWriterTest {
  @TempDir private Path folder;

  private Path[] files() throws IOException {
    try (var files = Files.list(folder)) {
      return files.toArray(Path[]::new);
    }
  }

  private static MemorySegment row(int bytes) {
    return MemorySegment.ofArray(new byte[bytes]);
  }

  @ParameterizedTest
  @CsvSource({
    "F32, a.npy",
    "F16, a.npy",
    "F32, a.safetensors",
    "F16, a.safetensors",
    "BF16, a.safetensors"
  })
  void roundTripsExactly(DType dtype, String name) throws IOException {
    int rows = 17;
    // One longer than the writer's buffer, for at least one type.
    int columns = 70_001;
    Random random = new Random(5);
    byte[][] written = new byte[rows][columns * dtype.bytes()];
    Path path = folder.resolve(name);
    try (TensorWriter writer = TensorWriter.create(path, dtype, rows, columns)) {
      for (int row = 0; row < rows; row++) {
        random.nextBytes(written[row]);
        writer.write(row, MemorySegment.ofArray(written[row]));
      }
      assertThat(path).doesNotExist();
      writer.commit();
    }
    assertThat(files()).containsExactly(path);
    String spec = path + (name.endsWith(".npy") ? "" : "#output");
    try (TensorFile tensor = TensorFile.open(spec)) {
      assertThat(tensor.rows()).isEqualTo(rows);
      assertThat(tensor.columns()).isEqualTo(columns);
      double[] values = new double[columns];
      for (int row = 0; row < rows; row++) {
        tensor.read(row, 0, columns, values, 0);
        ByteBuffer bits = ByteBuffer.wrap(written[row]).order(ByteOrder.LITTLE_ENDIAN);
        for (int column = 0; column < columns; column++) {
          float expected = dtype.decode(dtype.bytes() == 4 ? bits.getInt() : bits.getShort());
          if (Double.compare(values[column], expected) != 0) {
            assertThat(values[column]).as(row + ", " + column).isEqualTo(expected);
          }
        }
      }
    }
  }

  @Test
  void writesTheHeaderThatNumpyWrites() throws IOException {
    Path path = folder.resolve("a.npy");
    try (TensorWriter writer = TensorWriter.create(path, DType.F16, 1, 2)) {
      writer.write(0, MemorySegment.ofArray(new byte[] {1, 2, 3, 4}));
      writer.commit();
    }
    String text = "{'descr': '<f2', 'fortran_order': False, 'shape': (1, 2), }";
    assertThat(Files.readAllBytes(path))
        .isEqualTo(
            TestFiles.npy(
                1, text + " ".repeat(117 - text.length()) + "\n", new byte[] {1, 2, 3, 4}));
  }

  @ParameterizedTest
  @CsvSource({"plain", "with \"quotes\" and \\", "é#x.npy"})
  void namesTheTensor(String name) {
    Path path = folder.resolve("a.safetensors");
    try (TensorWriter writer = TensorWriter.create(path, DType.F32, 1, 1, name + "\n\t")) {
      writer.write(0, row(4));
      writer.commit();
    }
    try (TensorFile tensor = TensorFile.open(path + "#" + name + "\n\t")) {
      assertThat(tensor.dtype()).isEqualTo("F32");
    }
  }

  @Test
  void replacesAtOnceOrNotAtAll() throws IOException {
    Path path = Files.writeString(folder.resolve("a.npy"), "old");
    try (TensorWriter writer = TensorWriter.create(path, DType.F32, 2, 1)) {
      writer.write(0, row(4));
    }
    assertThat(path).hasContent("old");
    assertThat(files()).containsExactly(path);
    try (TensorWriter writer = TensorWriter.create(path, DType.F32, 1, 1)) {
      writer.write(0, row(4));
      assertThat(path).hasContent("old");
      writer.commit();
    }
    assertThat(path).hasSize(128 + 4);
    assertThat(files()).containsExactly(path);
  }

  @Test
  void replacesTheTargetOfALink() throws IOException {
    Path real = Files.writeString(folder.resolve("real.npy"), "old");
    Path link = Files.createSymbolicLink(folder.resolve("link.npy"), real);
    try (TensorWriter writer = TensorWriter.create(link, DType.F32, 1, 1)) {
      writer.write(0, row(4));
      writer.commit();
    }
    assertThat(link).isSymbolicLink();
    assertThat(real).hasSize(128 + 4);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = ';',
      value = {
        "BF16;a.npy;1;1;.npy has no bf16",
        "F32;a.bin;1;1;allowed are FILE.npy and FILE.safetensors",
        "F32;a.npy;0;1;at least 1",
        "F32;a.npy;4294967296;4294967296;overflows",
        "F32;none/a.npy;1;1;folder does not exist",
        "F32;folder.npy;1;1;not a regular file"
      })
  void refuses(DType dtype, String name, long rows, long columns, String message)
      throws IOException {
    Path taken = Files.createDirectory(folder.resolve("folder.npy"));
    Path path = folder.resolve(name);
    assertThatThrownBy(() -> TensorWriter.create(path, dtype, rows, columns))
        .isInstanceOf(UsageException.class)
        .hasMessageStartingWith(path + ": ")
        .hasMessageContaining(message);
    assertThat(files()).containsExactly(taken);
  }

  @Test
  void takesRowsInOrderAndAllOfThem() throws IOException {
    Path path = folder.resolve("a.npy");
    try (TensorWriter writer = TensorWriter.create(path, DType.F32, 2, 3)) {
      assertThatThrownBy(() -> writer.write(1, row(12)))
          .isInstanceOf(IllegalArgumentException.class);
      assertThatThrownBy(() -> writer.write(0, row(8)))
          .isInstanceOf(IllegalArgumentException.class);
      writer.write(0, row(12));
      assertThatThrownBy(writer::commit).isInstanceOf(IllegalStateException.class);
      writer.write(1, row(12));
      assertThatThrownBy(() -> writer.write(2, row(12)))
          .isInstanceOf(IllegalArgumentException.class);
      writer.commit();
      assertThatThrownBy(writer::commit).isInstanceOf(IllegalStateException.class);
    }
    assertThat(files()).containsExactly(path);
  }

  /** {@code /dev/full} takes the place of the temporary file, through a link. */
  private TensorWriter full(Path target, int rows, int rowBytes) throws IOException {
    Path device = Path.of("/dev/full");
    Assumptions.assumeTrue(Files.isWritable(device), "no /dev/full");
    Path temporary = Files.createSymbolicLink(folder.resolve("part"), device);
    return TensorWriter.create(
        target, temporary, StandardOpenOption.WRITE, new byte[128], rows, rowBytes);
  }

  @Test
  void aFullDiskLeavesNothingBehind() throws IOException {
    Path target = folder.resolve("a.npy");
    int bytes = 1 << 20;
    try (TensorWriter writer = full(target, 1, bytes)) {
      assertThatThrownBy(() -> writer.write(0, row(bytes)))
          .isInstanceOf(UnavailableException.class)
          .hasMessage(target + ": cannot be written: No space left on device");
      assertThat(files()).isEmpty();
    }
    try (TensorWriter writer = full(target, 1, 4)) {
      writer.write(0, row(4));
      assertThatThrownBy(writer::commit)
          .isInstanceOf(UnavailableException.class)
          .hasMessageContaining("No space left on device");
      assertThat(files()).isEmpty();
    }
    assertThat(Path.of("/dev/full")).exists();
  }
}
