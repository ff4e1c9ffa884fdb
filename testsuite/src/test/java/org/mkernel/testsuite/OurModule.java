package org.mkernel.testsuite;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.classfile.ClassFile;
import java.lang.classfile.ClassModel;
import java.lang.module.ModuleDescriptor;
import java.lang.module.ModuleReader;
import java.lang.module.ResolvedModule;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.stream.Stream;

/**
 * A module of mkernel as the tests resolved it: its descriptor and what its jar or folder holds.
 */
record OurModule(ResolvedModule resolved) {
  private static final String PREFIX = "org.mkernel.";

  /** All modules of mkernel that the test suite resolves. */
  static Stream<OurModule> all() {
    return OurModule.class.getModule().getLayer().configuration().modules().stream()
        .filter(module -> module.name().startsWith(PREFIX))
        .map(OurModule::new)
        .sorted((a, b) -> a.name().compareTo(b.name()));
  }

  /** The modules that are published: all but the test suite itself. */
  static Stream<OurModule> published() {
    return all().filter(module -> !module.name().equals("org.mkernel.testsuite"));
  }

  String name() {
    return resolved.name();
  }

  ModuleDescriptor descriptor() {
    return resolved.reference().descriptor();
  }

  /** Names of the modules that this one requires, those of annotations left out. */
  Stream<String> required() {
    return descriptor().requires().stream()
        .filter(
            requires -> !requires.modifiers().contains(ModuleDescriptor.Requires.Modifier.STATIC))
        .map(ModuleDescriptor.Requires::name);
  }

  /** Packages that everyone may use. */
  List<String> exportedPackages() {
    return descriptor().exports().stream()
        .filter(exports -> !exports.isQualified())
        .map(ModuleDescriptor.Exports::source)
        .sorted()
        .toList();
  }

  /** Names of files below a folder. */
  List<String> files(String folder) {
    return read(reader -> reader.list().filter(file -> file.startsWith(folder)).toList()).stream()
        .filter(file -> !file.endsWith("/"))
        .toList();
  }

  /** Every class, but for the module descriptor. */
  List<ClassModel> classes() {
    return read(reader ->
        reader
            .list()
            .filter(file -> file.endsWith(".class") && !file.endsWith("module-info.class"))
            .map(file -> ClassFile.of().parse(bytes(reader, file)))
            .toList());
  }

  /** Lines of a file. */
  List<String> lines(String file) {
    return read(reader -> new String(bytes(reader, file), StandardCharsets.UTF_8).lines().toList());
  }

  @Override
  public String toString() {
    return name();
  }

  private interface Reading<T> {
    T from(ModuleReader reader) throws IOException;
  }

  private <T> T read(Reading<T> reading) {
    try (ModuleReader reader = resolved.reference().open()) {
      return reading.from(reader);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static byte[] bytes(ModuleReader reader, String file) {
    try (var in = reader.open(file).orElseThrow()) {
      return in.readAllBytes();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
