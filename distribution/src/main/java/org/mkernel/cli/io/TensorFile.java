package org.mkernel.cli.io;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Objects;
import java.util.Optional;
import org.mkernel.api.UsageException;

/**
 * A tensor in a file, as a matrix of doubles. The file stays mapped until {@link #close()}; nothing
 * of it is kept on the heap. Threads may read at once; closing ends reads with an exception.
 *
 * <p>Read are {@code .npy} of version 1 to 3, in C and Fortran order and both byte orders, of
 * floats, integers and booleans; and safetensors of F64, F32, F16, BF16, integers and BOOL.
 */
public final class TensorFile implements AutoCloseable {
  private static final String SAFETENSORS = ".safetensors";

  private final String name;
  private final Arena arena;
  private final MemorySegment data;
  private final Layout layout;

  private TensorFile(String name, Arena arena, MemorySegment data, Layout layout) {
    this.name = name;
    this.arena = arena;
    this.data = data;
    this.layout = layout;
  }

  /**
   * Opens a file and checks its header.
   *
   * @param spec {@code FILE.npy} or {@code FILE.safetensors#TENSOR}
   * @return the tensor
   * @throws UsageException when there is no such file or tensor, or the file is not sound; one line
   *     that says what is wrong and where
   */
  public static TensorFile open(String spec) {
    Objects.requireNonNull(spec, "spec");
    int hash = spec.indexOf(SAFETENSORS + "#");
    boolean safetensors = hash >= 0 || spec.endsWith(SAFETENSORS);
    if (!safetensors && !spec.endsWith(".npy")) {
      throw new UsageException(
          "%s: unknown kind of file; allowed are FILE.npy and FILE.safetensors#TENSOR"
              .formatted(Text.path(spec)));
    }
    int pathEnd = hash < 0 ? spec.length() : hash + SAFETENSORS.length();
    String file = spec.substring(0, pathEnd);
    Optional<String> tensor =
        pathEnd + 1 < spec.length() ? Optional.of(spec.substring(pathEnd + 1)) : Optional.empty();
    return open(file, Text.path(file), safetensors, tensor);
  }

  private static TensorFile open(
      String file, String name, boolean safetensors, Optional<String> tensor) {
    try {
      Path path = Path.of(file);
      // Before it is opened: opening a pipe waits for a writer.
      if (Files.exists(path) && !Files.isRegularFile(path)) {
        throw new UsageException("%s: not a regular file".formatted(name));
      }
      try (FileChannel channel = FileChannel.open(path, StandardOpenOption.READ)) {
        Source source = new Source(channel, channel.size());
        Layout layout =
            safetensors
                ? SafetensorsHeader.read(name, source, tensor)
                : NpyHeader.read(name, source);
        return map(name, source, layout);
      }
    } catch (InvalidPathException e) {
      throw new UsageException("%s: no valid path".formatted(name));
    } catch (IOException e) {
      throw new UsageException("%s: cannot be read: %s".formatted(name, Text.reason(e)));
    }
  }

  @SuppressWarnings("MustBeClosedChecker") // close() closes the arena.
  private static TensorFile map(String name, Source source, Layout layout) throws IOException {
    Arena arena = Arena.ofShared();
    try {
      MemorySegment data =
          source.channel().map(FileChannel.MapMode.READ_ONLY, 0, source.size(), arena);
      return new TensorFile(name, arena, data, layout);
    } catch (IOException | RuntimeException e) {
      arena.close();
      throw e;
    }
  }

  /**
   * The rows: the product of all dimensions before the last.
   *
   * @return rows, at least 1; 1 when the tensor has fewer than two dimensions
   */
  public long rows() {
    return layout.rows();
  }

  /**
   * The columns: the last dimension.
   *
   * @return columns, at least 1; 1 when the tensor has no dimension
   */
  public long columns() {
    return layout.columns();
  }

  /**
   * The type of the elements in the file's own words, such as {@code <f4} or {@code BF16}.
   *
   * @return the type
   */
  public String dtype() {
    return layout.dtype();
  }

  /**
   * Reads part of a row, exactly.
   *
   * @param row the row
   * @param column the first column
   * @param count how many columns
   * @param out takes the values
   * @param at where the first goes
   * @throws UsageException when an integer of 64 bits has no exact double, or the file became
   *     shorter
   */
  public void read(long row, long column, int count, double[] out, int at) {
    Objects.checkIndex(row, layout.rows());
    Objects.checkFromIndexSize(column, count, layout.columns());
    Objects.checkFromIndexSize(at, count, out.length);
    if (count == 0) {
      return;
    }
    ElementType type = layout.type();
    boolean swap = layout.swap();
    boolean wide = type == ElementType.I64 || type == ElementType.U64;
    long position = layout.position(row, column);
    long step = layout.columnStride();
    try {
      for (int i = 0; i < count; i++, position += step) {
        if (wide && !type.exact(data, position, swap)) {
          throw new UsageException(
              "%s: byte %d, row %d, column %d: %s has no exact double"
                  .formatted(name, position, row, column + i, type.show(data, position, swap)));
        }
        out[at + i] = type.decode(data, position, swap);
      }
    } catch (InternalError e) {
      // What the JVM makes of a page that is no longer there.
      throw new UsageException(
          "%s: byte %d cannot be read: the file became shorter".formatted(name, position));
    }
  }

  /** Unmaps the file. */
  @Override
  public void close() {
    if (arena.scope().isAlive()) {
      arena.close();
    }
  }
}
