package org.mkernel.kernels.host;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentNavigableMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.atomic.AtomicLong;
import org.mkernel.api.DeviceException;
import org.mkernel.api.Failure;
import org.mkernel.api.MismatchException;
import org.mkernel.api.UnavailableException;

/**
 * Memory that other processes of this machine can map: a file that has no name, so that nothing is
 * left behind whenever a process ends, and that can't be cut short, so that nobody who mapped it
 * meets a hole. Peers open it through the process that made it.
 */
final class SharedSegment implements AutoCloseable {
  private static final ConcurrentNavigableMap<Long, SharedSegment> BY_ADDRESS =
      new ConcurrentSkipListMap<>();
  private static final AtomicLong COUNT = new AtomicLong();

  private final Arena arena = Arena.ofShared();
  private final String name;
  private final int descriptor;
  private final long address;
  private final long bytes;

  private SharedSegment(String name, int descriptor, long bytes) throws IOException {
    this.name = name;
    this.descriptor = descriptor;
    this.bytes = bytes;
    this.address = map(Path.of("/proc/self/fd/" + descriptor), bytes, arena).address();
  }

  /**
   * Makes zeroed memory, all of which is there: none is promised only.
   *
   * @param bytes the size, at least 1
   */
  static SharedSegment allocate(long bytes) {
    String name = "mkernel-%x-%d".formatted(MemoryHandle.NONCE, COUNT.incrementAndGet());
    int descriptor = MemoryFiles.create(name);
    boolean made = false;
    try {
      int error = MemoryFiles.reserve(descriptor, bytes);
      if (error != 0) {
        throw new DeviceException(
            "%d bytes of shared memory can't be had: error %d".formatted(bytes, error),
            Failure.remedy(
                    "use smaller tensors or fewer ranks, or raise the limits of memory and of the"
                        + " size of files (ulimit -f)")
                .withNativeCode(error));
      }
      SharedSegment segment = new SharedSegment(name, descriptor, bytes);
      BY_ADDRESS.put(segment.address, segment);
      made = true;
      return segment;
    } catch (IOException e) {
      throw new DeviceException(
          "%d bytes of shared memory can't be mapped: %s".formatted(bytes, e),
          Failure.remedy("raise the limit of address space (ulimit -v) or of open files (-n)"),
          e);
    } finally {
      if (!made) {
        MemoryFiles.close(descriptor);
      }
    }
  }

  /** The segment that holds a run of memory. */
  static Optional<SharedSegment> holding(long address, long bytes) {
    Map.Entry<Long, SharedSegment> entry = BY_ADDRESS.floorEntry(address);
    return entry == null || address + bytes > entry.getKey() + entry.getValue().bytes
        ? Optional.empty()
        : Optional.of(entry.getValue());
  }

  /**
   * Maps a segment of another process.
   *
   * @param process its number
   * @param descriptor the number of the file there
   * @param name the name that the file must have
   * @param bytes the size that it must have
   * @param arena what the mapping lives in
   * @return the address of its start
   */
  static long mapOf(long process, int descriptor, String name, long bytes, Arena arena) {
    Path path = Path.of("/proc/%d/fd/%d".formatted(process, descriptor));
    try {
      String target = Files.readSymbolicLink(path).toString();
      if (!target.startsWith("/memfd:" + name + " ")) {
        throw new MismatchException(
            "shared memory of process %d is %s; %s was announced".formatted(process, target, name));
      }
      if (Files.size(path) != bytes) {
        throw new MismatchException(
            "shared memory of process %d has %d bytes; %d were announced"
                .formatted(process, Files.size(path), bytes));
      }
      return map(path, bytes, arena).address();
    } catch (IOException e) {
      throw new UnavailableException(
          "shared memory of process %d can't be mapped: %s".formatted(process, e),
          Failure.remedy(
              "run the ranks of a node as one user in one process namespace, or number them as"
                  + " nodes of their own by MKERNEL_NODE"),
          e);
    }
  }

  private static MemorySegment map(Path path, long bytes, Arena arena) throws IOException {
    try (FileChannel file =
        FileChannel.open(path, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
      return file.map(FileChannel.MapMode.READ_WRITE, 0, bytes, arena);
    }
  }

  String name() {
    return name;
  }

  int descriptor() {
    return descriptor;
  }

  long address() {
    return address;
  }

  long bytes() {
    return bytes;
  }

  /** Ends the mapping here; peers keep theirs. */
  @Override
  public void close() {
    BY_ADDRESS.remove(address);
    arena.close();
    MemoryFiles.close(descriptor);
  }
}
