package org.mkernel.kernels.cuda;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.AtomicMoveNotSupportedException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.Function;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.mkernel.api.Availability;
import org.mkernel.api.Failure;
import org.mkernel.api.UnavailableException;
import org.mkernel.api.spi.KernelBinaries;

/**
 * Compiled programs by digest: what modules ship, then a folder, then the compiler, whose result
 * goes to the folder. Entries are whole or not there: they are written under another name and
 * moved, and each names its size and SHA-256. So processes may share a folder. One that is corrupt
 * is reported and compiled anew; a folder that can't be used is reported and done without.
 */
final class CubinStore {
  private static final Logger LOG = LogManager.getLogger(CubinStore.class);
  private static final String SUFFIX = ".cubin";

  private final List<KernelBinaries> shipped;
  private final Optional<Path> folder;
  private final CudaCompiler compiler;

  /**
   * Makes a store.
   *
   * @param shipped what modules ship
   * @param folder where to keep what is compiled here; made when it is first needed
   * @param compiler compiles what is nowhere
   */
  CubinStore(List<KernelBinaries> shipped, Optional<Path> folder, CudaCompiler compiler) {
    this.shipped = List.copyOf(shipped);
    this.folder = folder;
    this.compiler = compiler;
  }

  /** The store of this process: what modules ship, the user's folder, NVRTC. */
  static CubinStore ofUser() {
    return Holder.USER;
  }

  private static final class Holder {
    static final CubinStore USER =
        new CubinStore(
            KernelBinariesLoader.load(),
            userFolder(System::getenv, System.getProperty("user.home")),
            new Nvrtc());

    private Holder() {}
  }

  /**
   * Where a user's compiled programs are kept: {@code MKERNEL_CACHE}, else {@code mkernel} in
   * {@code XDG_CACHE_HOME}, else in {@code .cache} of the home folder.
   *
   * @param environment variables by name, null where there is none
   * @param home the home folder, null where there is none
   */
  static Optional<Path> userFolder(
      Function<String, @org.jspecify.annotations.Nullable String> environment,
      @org.jspecify.annotations.Nullable String home) {
    String own = environment.apply("MKERNEL_CACHE");
    if (own != null && !own.isEmpty()) {
      return Optional.of(Path.of(own, "cubins"));
    }
    String cache = environment.apply("XDG_CACHE_HOME");
    if (cache != null && !cache.isEmpty()) {
      return Optional.of(Path.of(cache, "mkernel", "cubins"));
    }
    return home == null || home.isEmpty() || home.equals("?")
        ? Optional.empty()
        : Optional.of(Path.of(home, ".cache", "mkernel", "cubins"));
  }

  /**
   * The machine code of a program.
   *
   * @throws UnavailableException when it is nowhere and can't be compiled here
   * @throws org.mkernel.api.DeviceException when the program is wrong
   */
  CubinEntry get(CudaProgram program) {
    String digest = program.digest(Nvrtc.SHIPPED);
    Optional<CubinEntry> found = ship(digest).or(() -> stored(digest));
    if (found.isPresent()) {
      return found.get();
    }
    if (compiler.availability() instanceof Availability.Unavailable missing) {
      throw new UnavailableException(
          "%s (%s) is in no module and not in %s, and can't be compiled: %s"
              .formatted(
                  program.describe(),
                  digest.substring(0, 12),
                  folder.map(Path::toString).orElse("a folder, for there is none"),
                  missing.reason()),
          Failure.remedy(missing.remedy()));
    }
    String here = program.digest(compiler.version());
    return (here.equals(digest) ? Optional.<CubinEntry>empty() : stored(here))
        .orElseGet(() -> compile(program, here));
  }

  private CubinEntry compile(CudaProgram program, String digest) {
    long start = System.nanoTime();
    CubinEntry entry = compiler.compile(program);
    LOG.debug("compiled {} in {} ms", program.describe(), (System.nanoTime() - start) / 1_000_000);
    folder.ifPresent(path -> store(path, digest, entry));
    return entry;
  }

  private Optional<CubinEntry> ship(String digest) {
    for (KernelBinaries binaries : shipped) {
      try (InputStream in = binaries.open(digest).orElse(null)) {
        if (in != null) {
          return Optional.of(CubinEntry.decode(in.readAllBytes()));
        }
      } catch (IOException | CubinEntry.CorruptException e) {
        LOG.warn(
            "the cubin {} of {} can't be used, as if it were not there: {}",
            digest,
            binaries.getClass().getModule().isNamed()
                ? binaries.getClass().getModule().getName()
                : binaries.getClass().getName(),
            e.getMessage());
      }
    }
    return Optional.empty();
  }

  private Optional<CubinEntry> stored(String digest) {
    if (folder.isEmpty() || !Files.isDirectory(folder.get()) || !isOurs(folder.get())) {
      return Optional.empty();
    }
    Path file = folder.get().resolve(digest + SUFFIX);
    try {
      return Optional.of(CubinEntry.decode(Files.readAllBytes(file)));
    } catch (NoSuchFileException e) {
      return Optional.empty();
    } catch (IOException | CubinEntry.CorruptException e) {
      LOG.warn("{} can't be used and is made anew: {}", file, e.getMessage());
      return Optional.empty();
    }
  }

  private static void store(Path folder, String digest, CubinEntry entry) {
    try {
      if (!Files.isDirectory(folder)) {
        Files.createDirectories(
            folder,
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
      }
      if (!isOurs(folder)) {
        return;
      }
      Path next = Files.createTempFile(folder, digest, ".next");
      try {
        Files.write(next, entry.encode());
        Path file = folder.resolve(digest + SUFFIX);
        try {
          Files.move(next, file, StandardCopyOption.ATOMIC_MOVE);
        } catch (AtomicMoveNotSupportedException e) {
          Files.move(next, file, StandardCopyOption.REPLACE_EXISTING);
        }
      } finally {
        Files.deleteIfExists(next);
      }
    } catch (IOException | UnsupportedOperationException e) {
      LOG.warn(
          "{} can't be written ({}): the program is compiled again in each process; set MKERNEL_CACHE"
              + " to a folder that can",
          folder,
          e.toString());
    }
  }

  /** Machine code runs with our rights: it must come from nobody else. */
  private static boolean isOurs(Path folder) {
    try {
      Set<PosixFilePermission> permissions = Files.getPosixFilePermissions(folder);
      if (permissions.contains(PosixFilePermission.OTHERS_WRITE)) {
        LOG.warn("{} is not used: everyone may write there; chmod o-w it", folder);
        return false;
      }
      return true;
    } catch (IOException | UnsupportedOperationException e) {
      LOG.warn("{} is not used: its permissions can't be read ({})", folder, e.toString());
      return false;
    }
  }
}
