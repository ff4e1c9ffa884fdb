package org.mkernel.kernels.host;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.VarHandle;
import org.mkernel.api.Failure;
import org.mkernel.api.UnavailableException;

/** Files in memory that have no name: what the C library offers for them on Linux. */
final class MemoryFiles {
  private static final int CLOSE_ON_EXEC = 1;
  private static final int ALLOW_SEALING = 2;
  private static final int ADD_SEALS = 1033;
  private static final int SEAL_SHRINK_AND_GROW = 2 | 4;

  private MemoryFiles() {}

  /** Functions of the C library; found when the first file is made. */
  private static final class Functions {
    static final MemoryLayout STATE = Linker.Option.captureStateLayout();
    static final VarHandle ERRNO = STATE.varHandle(MemoryLayout.PathElement.groupElement("errno"));
    static final MethodHandle CREATE =
        find(
            "memfd_create",
            FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.ADDRESS, ValueLayout.JAVA_INT),
            Linker.Option.captureCallState("errno"));
    static final MethodHandle RESERVE =
        find(
            "posix_fallocate",
            FunctionDescriptor.of(
                ValueLayout.JAVA_INT,
                ValueLayout.JAVA_INT,
                ValueLayout.JAVA_LONG,
                ValueLayout.JAVA_LONG));
    static final MethodHandle CONTROL =
        find(
            "fcntl",
            FunctionDescriptor.of(
                ValueLayout.JAVA_INT,
                ValueLayout.JAVA_INT,
                ValueLayout.JAVA_INT,
                ValueLayout.JAVA_INT),
            Linker.Option.firstVariadicArg(2));
    static final MethodHandle CLOSE =
        find("close", FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_INT));

    private Functions() {}

    @SuppressWarnings("restricted") // The C library of the system, by the types that it declares.
    private static MethodHandle find(
        String name, FunctionDescriptor type, Linker.Option... options) {
      Linker linker = Linker.nativeLinker();
      return linker.downcallHandle(
          linker
              .defaultLookup()
              .find(name)
              .orElseThrow(() ->
                  new UnavailableException(
                      "the C library has no " + name,
                      Failure.remedy("put all ranks of a node into one process"))),
          type,
          options);
    }
  }

  /**
   * Makes an empty file.
   *
   * @param name what it is called in lists of open files
   * @return its descriptor
   */
  static int create(String name) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment state = arena.allocate(Functions.STATE);
      int descriptor =
          (int)
              Functions.CREATE.invokeExact(
                  state, arena.allocateFrom(name), CLOSE_ON_EXEC | ALLOW_SEALING);
      if (descriptor < 0) {
        int error = (int) Functions.ERRNO.get(state, 0L);
        throw new UnavailableException(
            "no shared memory can be made: error %d".formatted(error),
            Failure.remedy("raise the limit of open files (ulimit -n)").withNativeCode(error));
      }
      return descriptor;
    } catch (Throwable e) {
      throw rethrown(e);
    }
  }

  /**
   * Gives a file its size, with all memory that it needs, and fixes it.
   *
   * @return 0, or the number of the error
   */
  static int reserve(int descriptor, long bytes) {
    try {
      int error = (int) Functions.RESERVE.invokeExact(descriptor, 0L, bytes);
      if (error == 0) {
        // Where it can't be sealed, peers still compare its size.
        int _ = (int) Functions.CONTROL.invokeExact(descriptor, ADD_SEALS, SEAL_SHRINK_AND_GROW);
      }
      return error;
    } catch (Throwable e) {
      throw rethrown(e);
    }
  }

  static void close(int descriptor) {
    try {
      int _ = (int) Functions.CLOSE.invokeExact(descriptor);
    } catch (Throwable e) {
      throw rethrown(e);
    }
  }

  private static RuntimeException rethrown(Throwable e) {
    if (e instanceof Error error) {
      throw error;
    }
    return e instanceof RuntimeException known
        ? known
        : new IllegalStateException("a C function threw", e);
  }
}
