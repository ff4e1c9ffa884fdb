package org.mkernel.kernels.cuda;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.SymbolLookup;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.mkernel.api.Availability;

/** NVRTC, with a stand-in for the driver where there is none: the bindings ask for both. */
final class NvrtcWithStub implements CudaCompiler {
  private static final String DRIVER = "libcuda.so.1";

  private final Path folder;
  private final Nvrtc nvrtc = new Nvrtc();

  NvrtcWithStub(Path folder) {
    this.folder = folder;
  }

  @SuppressWarnings("restricted")
  @Override
  public Availability availability() {
    try (Arena arena = Arena.ofConfined()) {
      SymbolLookup _ = SymbolLookup.libraryLookup(DRIVER, arena);
    } catch (IllegalArgumentException e) {
      // Once loaded it is found by its name, wherever it lies.
      System.load(stub().toAbsolutePath().toString());
    }
    Availability availability = nvrtc.availability();
    if (availability.isAvailable() && nvrtc.version() != Nvrtc.SHIPPED) {
      return new Availability.Unavailable(
          "NVRTC has version %d; what is shipped is compiled with %d"
              .formatted(nvrtc.version(), Nvrtc.SHIPPED),
          "put the cuda-redist of the bindings' version on the class path");
    }
    return availability;
  }

  private Path stub() {
    Path stub = folder.resolve(DRIVER);
    try {
      Process gcc =
          new ProcessBuilder(
                  "gcc",
                  "-shared",
                  "-nostdlib",
                  "-Wl,-soname," + DRIVER,
                  "-x",
                  "c",
                  "/dev/null",
                  "-o",
                  stub.toString())
              .inheritIO()
              .start();
      if (!gcc.waitFor(1, TimeUnit.MINUTES) || gcc.exitValue() != 0) {
        gcc.destroyForcibly();
        throw new IllegalStateException("gcc can't make " + stub);
      }
      return stub;
    } catch (IOException e) {
      throw new IllegalStateException(
          "a stand-in for the CUDA driver is made by gcc; install it: apt-get install gcc", e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted while gcc ran", e);
    }
  }

  @Override
  public int version() {
    return nvrtc.version();
  }

  @Override
  public CubinEntry compile(CudaProgram program) {
    return nvrtc.compile(program);
  }
}
