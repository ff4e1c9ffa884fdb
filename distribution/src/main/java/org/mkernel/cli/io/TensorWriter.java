package org.mkernel.cli.io;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.ThreadLocalRandom;
import org.mkernel.api.DType;
import org.mkernel.api.Failure;
import org.mkernel.api.UnavailableException;
import org.mkernel.api.UsageException;

/**
 * Writes a matrix row by row to {@code .npy} (f32, f16) or safetensors (any type). The rows go to a
 * temporary file beside the target, which takes its place at once on {@link #commit()}; whatever
 * ends the writer otherwise, a signal to the process included, deletes it. Not safe for use by
 * several threads.
 */
public final class TensorWriter implements AutoCloseable {
  /** The name of the tensor in a safetensors file if none is given. */
  public static final String DEFAULT_TENSOR = "output";

  private static final int BUFFER_BYTES = 1 << 18;

  private final Path target;
  private final Path temporary;
  private final FileChannel channel;
  private final long rows;
  private final long rowBytes;
  private final ByteBuffer buffer = ByteBuffer.allocateDirect(BUFFER_BYTES);
  private final MemorySegment bufferMemory = MemorySegment.ofBuffer(buffer);
  private final Thread atExit;
  private long next;
  private boolean open = true;

  private TensorWriter(Path target, Path temporary, FileChannel channel, long rows, long rowBytes) {
    this.target = target;
    this.temporary = temporary;
    this.channel = channel;
    this.rows = rows;
    this.rowBytes = rowBytes;
    this.atExit = new Thread(() -> deleteQuietly(temporary), "mkernel-delete-temporary");
  }

  /**
   * Starts a file, with the tensor named {@link #DEFAULT_TENSOR} where the format has names.
   *
   * @param path the target, ending in {@code .npy} or {@code .safetensors}; a file there is
   *     replaced
   * @param dtype the type of the elements
   * @param rows rows, at least 1
   * @param columns columns, at least 1
   * @return the writer
   * @throws UsageException when the path cannot be such a file
   * @throws UnavailableException when the file system refuses
   */
  public static TensorWriter create(Path path, DType dtype, long rows, long columns) {
    return create(path, dtype, rows, columns, DEFAULT_TENSOR);
  }

  /**
   * Starts a file.
   *
   * @param path the target, ending in {@code .npy} or {@code .safetensors}; a file there is
   *     replaced
   * @param dtype the type of the elements
   * @param rows rows, at least 1
   * @param columns columns, at least 1
   * @param tensor the tensor's name in a safetensors file; {@code .npy} has none
   * @return the writer
   * @throws UsageException when the path cannot be such a file
   * @throws UnavailableException when the file system refuses
   */
  public static TensorWriter create(
      Path path, DType dtype, long rows, long columns, String tensor) {
    byte[] header = header(path, dtype, rows, columns, tensor);
    try {
      // A link's target is what gets replaced, and not the link.
      Path target = Files.exists(path) ? path.toRealPath() : path.toAbsolutePath();
      if (Files.exists(target) && !Files.isRegularFile(target)) {
        throw new UsageException("%s: not a regular file".formatted(Text.path(path)));
      }
      for (; ; ) {
        long random = ThreadLocalRandom.current().nextLong();
        Path temporary = target.resolveSibling(".mkernel-%016x.part".formatted(random));
        try {
          return create(
              target,
              temporary,
              StandardOpenOption.CREATE_NEW,
              header,
              rows,
              columns * dtype.bytes());
        } catch (FileAlreadyExistsException e) {
          // Another one, then.
        }
      }
    } catch (NoSuchFileException e) {
      throw new UsageException("%s: its folder does not exist".formatted(Text.path(path)));
    } catch (IOException e) {
      throw failed(path, e);
    }
  }

  /** Starts a file through a given temporary one; tests put a full device there. */
  static TensorWriter create(
      Path target, Path temporary, StandardOpenOption how, byte[] header, long rows, long rowBytes)
      throws IOException {
    FileChannel channel = FileChannel.open(temporary, StandardOpenOption.WRITE, how);
    TensorWriter writer = new TensorWriter(target, temporary, channel, rows, rowBytes);
    try {
      Runtime.getRuntime().addShutdownHook(writer.atExit);
      writer.put(MemorySegment.ofArray(header));
      return writer;
    } catch (IOException | RuntimeException e) {
      writer.close();
      throw e;
    }
  }

  /** The bytes before the first element. */
  static byte[] header(Path path, DType dtype, long rows, long columns, String tensor) {
    String name = Text.path(path);
    if (rows < 1 || columns < 1) {
      throw new UsageException(
          "%s: the shape is %d x %d; both must be at least 1".formatted(name, rows, columns));
    }
    long bytes = Layout.byteCount(new long[] {rows, columns}, dtype.bytes());
    if (bytes < 0) {
      throw new UsageException("%s: the shape %d x %d overflows".formatted(name, rows, columns));
    }
    String file = path.toString();
    if (file.endsWith(".safetensors")) {
      return safetensorsHeader(name, dtype, rows, columns, bytes, tensor);
    }
    if (!file.endsWith(".npy")) {
      throw new UsageException(
          "%s: unknown kind of file; allowed are FILE.npy and FILE.safetensors".formatted(name));
    }
    return npyHeader(name, dtype, rows, columns);
  }

  private static byte[] npyHeader(String name, DType dtype, long rows, long columns) {
    String descr =
        switch (dtype) {
          case F32 -> "<f4";
          case F16 -> "<f2";
          case BF16 ->
              throw new UsageException(
                  "%s: .npy has no bf16: name a .safetensors file".formatted(name));
        };
    String text =
        "{'descr': '%s', 'fortran_order': False, 'shape': (%d, %d), }"
            .formatted(descr, rows, columns);
    int prefix = 10;
    int length = (prefix + text.length() + 1 + 63) / 64 * 64 - prefix;
    ByteBuffer header = ByteBuffer.allocate(prefix + length);
    header.put(new byte[] {(byte) 0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0});
    header.put((byte) length).put((byte) (length >> 8));
    header.put(
        (text + " ".repeat(length - text.length() - 1) + "\n").getBytes(StandardCharsets.US_ASCII));
    return header.array();
  }

  private static byte[] safetensorsHeader(
      String name, DType dtype, long rows, long columns, long bytes, String tensor) {
    if (tensor.isEmpty()
        || tensor.equals("__metadata__")
        || !StandardCharsets.UTF_8.newEncoder().canEncode(tensor)) {
      throw new UsageException("%s: %s cannot name a tensor".formatted(name, Text.quote(tensor)));
    }
    StringBuilder text = new StringBuilder("{\"");
    for (int i = 0; i < tensor.length(); i++) {
      char c = tensor.charAt(i);
      if (c < ' ') {
        text.append("\\u%04x".formatted((int) c));
      } else {
        text.append(c == '"' || c == '\\' ? "\\" : "").append(c);
      }
    }
    text.append(
        "\":{\"dtype\":\"%s\",\"shape\":[%d,%d],\"data_offsets\":[0,%d]}}"
            .formatted(dtype.name(), rows, columns, bytes));
    byte[] json = text.toString().getBytes(StandardCharsets.UTF_8);
    int length = (json.length + 7) / 8 * 8;
    ByteBuffer header = ByteBuffer.allocate(8 + length);
    header.putLong(Long.reverseBytes(length)).put(json);
    while (header.hasRemaining()) {
      header.put((byte) ' ');
    }
    return header.array();
  }

  /**
   * Writes the next row.
   *
   * @param row its number: rows come in order, from 0
   * @param rowBytes its elements, little-endian
   * @throws UnavailableException when the disk is full or fails; the temporary file is gone then
   */
  public void write(long row, MemorySegment rowBytes) {
    checkOpen();
    if (row != next || row >= rows) {
      throw new IllegalArgumentException(
          "row is %d; the next of %d is %d".formatted(row, rows, next));
    }
    if (rowBytes.byteSize() != this.rowBytes) {
      throw new IllegalArgumentException(
          "a row has %d bytes, not %d".formatted(this.rowBytes, rowBytes.byteSize()));
    }
    try {
      put(rowBytes);
      next++;
    } catch (IOException e) {
      close();
      throw failed(target, e);
    }
  }

  /**
   * Puts the file in its place and closes the writer. Until then nothing is seen of it there.
   *
   * @throws UnavailableException when the disk is full or fails; the temporary file is gone then
   */
  public void commit() {
    checkOpen();
    if (next != rows) {
      throw new IllegalStateException("%d of %d rows are written".formatted(next, rows));
    }
    try {
      flush();
      // Some file systems find out only now that they are full.
      channel.force(true);
      channel.close();
      Files.move(temporary, target, StandardCopyOption.ATOMIC_MOVE);
      open = false;
      forgetAtExit();
    } catch (IOException e) {
      throw failed(target, e);
    } finally {
      close();
    }
  }

  /** Deletes the temporary file, unless {@link #commit()} made it the target. */
  @Override
  public void close() {
    if (!open) {
      return;
    }
    open = false;
    try {
      channel.close();
    } catch (IOException e) {
      // The file goes anyway.
    }
    deleteQuietly(temporary);
    forgetAtExit();
  }

  private void forgetAtExit() {
    try {
      Runtime.getRuntime().removeShutdownHook(atExit);
    } catch (IllegalStateException e) {
      // The process is ending, and the hook finds nothing to delete.
    }
  }

  private void checkOpen() {
    if (!open) {
      throw new IllegalStateException("the writer of %s is closed".formatted(target));
    }
  }

  private void put(MemorySegment bytes) throws IOException {
    for (long done = 0; done < bytes.byteSize(); ) {
      if (!buffer.hasRemaining()) {
        flush();
      }
      int count = (int) Math.min(buffer.remaining(), bytes.byteSize() - done);
      MemorySegment.copy(bytes, done, bufferMemory, buffer.position(), count);
      buffer.position(buffer.position() + count);
      done += count;
    }
  }

  private void flush() throws IOException {
    buffer.flip();
    while (buffer.hasRemaining()) {
      channel.write(buffer);
    }
    buffer.clear();
  }

  private static void deleteQuietly(Path path) {
    try {
      Files.deleteIfExists(path);
    } catch (IOException e) {
      // Nothing more can be done about it.
    }
  }

  private static UnavailableException failed(Path path, IOException e) {
    return new UnavailableException(
        "%s: cannot be written: %s".formatted(Text.path(path), Text.reason(e)),
        Failure.remedy("name a file on a disk with room that you may write to"),
        e);
  }
}
