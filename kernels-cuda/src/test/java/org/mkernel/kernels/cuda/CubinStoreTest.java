package org.mkernel.kernels.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.mkernel.api.Availability;
import org.mkernel.api.UnavailableException;
import org.mkernel.api.spi.KernelBinaries;

final class CubinStoreTest {
  private final CudaProgram program = TestPrograms.scale();
  private final String digest = program.digest(Nvrtc.SHIPPED);
  private final Map<String, byte[]> shipped = new HashMap<>();
  private final Compiler compiler = new Compiler();

  @TempDir Path folder;

  /** Compiles to the same bytes each time, and counts. */
  private static final class Compiler implements CudaCompiler {
    private int version = Nvrtc.SHIPPED;
    private int compiled;
    private Availability availability = new Availability.Available("");

    @Override
    public Availability availability() {
      return availability;
    }

    @Override
    public int version() {
      return version;
    }

    @Override
    public synchronized CubinEntry compile(CudaProgram program) {
      compiled++;
      return new CubinEntry("log", program.digest(version).getBytes(StandardCharsets.UTF_8));
    }
  }

  private CubinStore store(Path path) {
    KernelBinaries binaries =
        new KernelBinaries() {
          @Override
          public String device() {
            return "cuda";
          }

          @Override
          public Optional<InputStream> open(String name) {
            return Optional.ofNullable(shipped.get(name)).map(ByteArrayInputStream::new);
          }
        };
    return new CubinStore(List.of(binaries), Optional.of(path), compiler);
  }

  private Path file() {
    return cache().resolve(digest + ".cubin");
  }

  private Path cache() {
    return folder.resolve("a/b");
  }

  @Test
  void whatIsShippedIsNotCompiled() {
    shipped.put(digest, new CubinEntry("", new byte[] {7}).encode());
    assertThat(store(cache()).get(program).cubin()).containsExactly(7);
    assertThat(compiler.compiled).isZero();
    assertThat(cache()).doesNotExist();
  }

  @Test
  void whatWasCompiledOnceIsKept() throws IOException {
    byte[] first = store(cache()).get(program).cubin();
    byte[] second = store(cache()).get(program).cubin();
    assertThat(second).isEqualTo(first);
    assertThat(compiler.compiled).isEqualTo(1);
    try (Stream<Path> files = Files.list(cache())) {
      assertThat(files).containsExactly(file());
    }
    assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(cache())))
        .isEqualTo("rwx------");
  }

  @Test
  void anotherCompilerMakesAnotherEntry() {
    compiler.version = 13000;
    byte[] own = store(cache()).get(program).cubin();
    assertThat(new String(own, StandardCharsets.UTF_8)).isEqualTo(program.digest(13000));
    assertThat(store(cache()).get(program).cubin()).isEqualTo(own);
    assertThat(compiler.compiled).isEqualTo(1);
    assertThat(file()).doesNotExist();
  }

  @Test
  void whatIsCorruptIsMadeAnew() throws IOException {
    shipped.put(digest, new byte[100]);
    byte[] good = store(cache()).get(program).cubin();
    byte[] whole = Files.readAllBytes(file());
    for (int length : new int[] {0, 20, whole.length - 1}) {
      Files.write(file(), java.util.Arrays.copyOf(whole, length));
      assertThat(store(cache()).get(program).cubin()).isEqualTo(good);
      assertThat(Files.readAllBytes(file())).isEqualTo(whole);
    }
    assertThat(compiler.compiled).isEqualTo(4);
  }

  @Test
  void whatIsCorruptAndCannotBeMadeIsUnavailable() throws IOException {
    compiler.availability = new Availability.Unavailable("there is no NVRTC", "install it");
    shipped.put(digest, new byte[100]);
    Files.createDirectories(cache());
    Files.write(file(), new byte[10]);
    assertThatThrownBy(() -> store(cache()).get(program))
        .isInstanceOf(UnavailableException.class)
        .hasMessageContainingAll("scale.cu for sm_90a", cache().toString(), "there is no NVRTC")
        .satisfies(
            e -> assertThat(((UnavailableException) e).failure().remedy()).contains("install it"));
  }

  @Test
  void aFolderThatCannotBeMadeIsDoneWithout() throws IOException {
    Path inAFile = Files.createFile(folder.resolve("file")).resolve("cubins");
    assertThat(store(inAFile).get(program).cubin()).isNotEmpty();
    assertThat(store(inAFile).get(program).cubin()).isNotEmpty();
    assertThat(compiler.compiled).isEqualTo(2);
  }

  @Test
  void aFolderThatEveryoneMayWriteIsNotTrusted() throws IOException {
    store(cache()).get(program);
    Files.setPosixFilePermissions(cache(), PosixFilePermissions.fromString("rwxrwxrwx"));
    byte[] before = new CubinEntry("", new byte[] {66}).encode();
    Files.write(file(), before);
    assertThat(store(cache()).get(program).cubin()).isNotEqualTo(new byte[] {66});
    assertThat(Files.readAllBytes(file())).isEqualTo(before);
  }

  @Test
  void manyMayMakeTheSameEntryAtOnce() throws Exception {
    try (ExecutorService threads = Executors.newFixedThreadPool(8)) {
      List<Future<byte[]>> all =
          IntStream.range(0, 64)
              .mapToObj(i -> threads.submit(() -> store(cache()).get(program).cubin()))
              .toList();
      for (Future<byte[]> one : all) {
        assertThat(new String(one.get(), StandardCharsets.UTF_8)).isEqualTo(digest);
      }
    }
    try (Stream<Path> files = Files.list(cache())) {
      assertThat(files).containsExactly(file());
    }
  }

  @Test
  void theFolderIsTheUsersUnlessSaidOtherwise() {
    assertThat(CubinStore.userFolder(name -> null, "/home/u"))
        .contains(Path.of("/home/u/.cache/mkernel/cubins"));
    assertThat(CubinStore.userFolder(Map.of("XDG_CACHE_HOME", "/x")::get, "/home/u"))
        .contains(Path.of("/x/mkernel/cubins"));
    assertThat(
            CubinStore.userFolder(
                Map.of("XDG_CACHE_HOME", "/x", "MKERNEL_CACHE", "/own")::get, "/home/u"))
        .contains(Path.of("/own/cubins"));
    assertThat(CubinStore.userFolder(name -> null, null)).isEmpty();
    assertThat(CubinStore.userFolder(name -> null, "?")).isEmpty();
  }
}
