import static java.util.stream.Collectors.joining;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.lang.module.ModuleFinder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.spi.ToolProvider;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Builds the image: links the modules with the JDK's, lays out the launcher and the native libraries,
 * and puts the result in place of the last one. Beside the image it leaves the digest of the sources.
 *
 * <p>Arguments: jar of the command; file that lists what it depends on; folder whose files are copied
 * into the image as they are; folder of the image; digest.
 */
final class BuildImage {
  /** What plug-ins may count on beside what mkernel needs: a promise, so nothing is taken away. */
  private static final List<String> JDK_MODULES =
      List.of(
          "java.instrument",
          "java.logging",
          "java.management",
          "java.naming",
          "java.net.http",
          "java.xml",
          "jdk.httpserver",
          "jdk.jcmd",
          "jdk.jfr",
          "jdk.management",
          "jdk.management.agent",
          "jdk.net",
          "jdk.unsupported",
          "jdk.zipfs");

  /**
   * Native libraries that the image needs, with the name that each gets there. The binding without
   * LAPACK asks for OpenBLAS by a name of its own; under any other name JavaCPP would copy it to a
   * cache in the home folder. libstdc++ and libgcc_s come from the system, as a pair; libcuda comes
   * with the driver; NVRTC and cuBLAS are used where the system has them.
   */
  private static final Map<String, String> NATIVES =
      Map.of(
          "libjnijavacpp.so", "libjnijavacpp.so",
          "libjnicublas.so", "libjnicublas.so",
          "libjnicudart.so", "libjnicudart.so",
          "libcudart.so.13", "libcudart.so.13",
          "libjninvrtc.so", "libjninvrtc.so",
          "libjniopenblas_nolapack.so", "libjniopenblas_nolapack.so",
          "libopenblas.so.0", "libopenblas_nolapack.so.0",
          "libgfortran.so.5", "libgfortran.so.5",
          "libquadmath.so.0", "libquadmath.so.0");

  /** Native libraries that the image takes when the build made them: g++ and headers were there. */
  private static final Set<String> OPTIONAL_NATIVES = Set.of("libjnimkernelverbs.so");

  private BuildImage() {}

  public static void main(String[] args) throws IOException {
    Path command = Path.of(args[0]);
    String dependencies = Files.readString(Path.of(args[1])).strip();
    List<Path> modulePath =
        Stream.concat(
                Stream.of(command), Stream.of(dependencies.split(File.pathSeparator)).map(Path::of))
            .toList();
    Path files = Path.of(args[2]);
    Path image = Path.of(args[3]);
    Path digest = image.resolveSibling(image.getFileName() + ".digest");
    Path next = image.resolveSibling(image.getFileName() + ".next");

    delete(next);
    link(modulePath, next);
    unpackNatives(modulePath, Files.createDirectories(next.resolve("lib/natives")));
    copy(files, next);

    Files.deleteIfExists(digest);
    delete(image);
    Files.move(next, image);
    Files.writeString(digest, args[4] + "\n");
  }

  private static void link(List<Path> modulePath, Path image) {
    Set<String> ours =
        ModuleFinder.of(modulePath.toArray(Path[]::new)).findAll().stream()
            .map(module -> module.descriptor().name())
            .collect(Collectors.toSet());
    // What the platform modules hold lies in lib/natives already, and so do libraries of our own.
    String unpacked =
        Stream.concat(
                ours.stream()
                    .filter(name -> name.endsWith(".linux.x86_64"))
                    .map(name -> "/" + name + "/org/bytedeco/**"),
                OPTIONAL_NATIVES.stream().map(name -> "**/linux-x86_64/" + name))
            .sorted()
            .collect(joining(","));
    ToolProvider jlink = ToolProvider.findFirst("jlink").orElseThrow();
    int status =
        jlink.run(
            System.out,
            System.err,
            "--module-path="
                + modulePath.stream().map(Path::toString).collect(joining(File.pathSeparator)),
            "--add-modules="
                + Stream.concat(ours.stream(), JDK_MODULES.stream()).sorted().collect(joining(",")),
            "--exclude-resources=" + unpacked,
            "--strip-debug",
            "--compress=zip-6",
            "--no-man-pages",
            "--no-header-files",
            "--output=" + image);
    if (status != 0) {
      throw new IllegalStateException("jlink ended with status " + status);
    }
  }

  /** Lays the native libraries of the JavaCPP presets side by side, where they find one another. */
  private static void unpackNatives(List<Path> modulePath, Path folder) throws IOException {
    for (Path jar : modulePath) {
      try (JarFile file = new JarFile(jar.toFile())) {
        for (JarEntry entry : file.stream().toList()) {
          String name = entry.getName().substring(entry.getName().lastIndexOf('/') + 1);
          if (NATIVES.containsKey(name) || OPTIONAL_NATIVES.contains(name)) {
            try (InputStream in = file.getInputStream(entry)) {
              Files.copy(in, folder.resolve(NATIVES.getOrDefault(name, name)));
            }
          }
        }
      }
    }
    for (String name : NATIVES.values()) {
      if (!Files.exists(folder.resolve(name))) {
        throw new IllegalStateException("no jar of the module path holds " + name);
      }
    }
  }

  private static void copy(Path from, Path to) throws IOException {
    try (Stream<Path> paths = Files.walk(from)) {
      for (Path path : paths.filter(Files::isRegularFile).toList()) {
        Path copy = to.resolve(from.relativize(path).toString());
        Files.createDirectories(copy.getParent());
        Files.copy(path, copy, StandardCopyOption.COPY_ATTRIBUTES);
      }
    }
  }

  private static void delete(Path folder) throws IOException {
    if (Files.exists(folder)) {
      try (Stream<Path> paths = Files.walk(folder)) {
        for (Path path : paths.sorted(Comparator.reverseOrder()).toList()) {
          Files.delete(path);
        }
      }
    }
  }
}
