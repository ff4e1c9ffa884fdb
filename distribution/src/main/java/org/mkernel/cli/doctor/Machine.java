package org.mkernel.cli.doctor;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.function.Supplier;
import org.mkernel.api.Config;
import org.mkernel.api.PluginInfo;
import org.mkernel.cli.doctor.Finding.Evidence;

/**
 * All that probes look at. Files are read to a bound, folders listed to a bound; what is not there,
 * or is no file, reads as nothing: the kernel shows less in containers and to ordinary users.
 *
 * @param root the folder that holds {@code proc}, {@code sys}, {@code dev} and the others
 * @param environment variables
 * @param config settings
 * @param java the virtual machine
 * @param programs programs that show something
 * @param providers what was found when mkernel was opened; throws what opening it threw
 */
record Machine(
    Path root,
    Map<String, String> environment,
    Config config,
    JavaFacts java,
    Programs programs,
    Supplier<List<PluginInfo>> providers) {
  static final int MOST_BYTES = 1 << 16;
  private static final int MOST_ENTRIES = 4096;

  Machine {
    environment = Map.copyOf(environment);
  }

  /** Where a path of the machine really is. */
  Path at(String path) {
    return root.resolve(path.substring(1));
  }

  boolean exists(String path) {
    return Files.exists(at(path));
  }

  /** Reads a file as text. */
  Reading read(String path) {
    return new Reading(
        path, bytes(path, MOST_BYTES).map(bytes -> new String(bytes, StandardCharsets.ISO_8859_1)));
  }

  /** The first bytes of a file. Pipes and devices are not opened: they could be waited for. */
  Optional<byte[]> bytes(String path, int most) {
    Path file = at(path);
    if (!Files.isRegularFile(file)) {
      return Optional.empty();
    }
    try (InputStream in = Files.newInputStream(file)) {
      return Optional.of(in.readNBytes(most));
    } catch (IOException e) {
      return Optional.empty();
    }
  }

  /** The names in a folder, sorted. */
  List<String> list(String folder) {
    List<String> names = new ArrayList<>();
    if (!Files.isDirectory(at(folder))) {
      return names;
    }
    try (DirectoryStream<Path> entries = Files.newDirectoryStream(at(folder))) {
      for (Path entry : entries) {
        if (names.size() == MOST_ENTRIES) {
          break;
        }
        names.add(String.valueOf(entry.getFileName()));
      }
    } catch (IOException e) {
      return List.of();
    }
    names.sort(null);
    return names;
  }

  /** Paths of those entries of a folder whose names match. */
  List<String> list(String folder, String names) {
    return list(folder).stream()
        .filter(name -> name.matches(names))
        .map(name -> folder + "/" + name)
        .toList();
  }

  Optional<String> variable(String name) {
    return Optional.ofNullable(environment.get(name)).filter(value -> !value.isEmpty());
  }

  Evidence variableEvidence(String name) {
    return new Evidence(name, environment.getOrDefault(name, "(not set)"));
  }

  /** The folders of RDMA adapters. */
  List<String> adapters() {
    return list("/sys/class/infiniband", ".*");
  }

  /** The PCI folders of NVIDIA GPUs. */
  List<String> gpus() {
    return list("/sys/bus/pci/devices", ".*").stream()
        .filter(device -> read(device + "/vendor").value().equals("0x10de"))
        .filter(device -> read(device + "/class").value().startsWith("0x03"))
        .toList();
  }

  /** The CPUs that this process may use, when the kernel says. */
  OptionalInt allowedCpus() {
    return read("/proc/self/status")
        .after("Cpus_allowed_list:")
        .map(CpuList::of)
        .filter(cpus -> !cpus.isEmpty())
        .map(cpus -> OptionalInt.of(cpus.cardinality()))
        .orElse(OptionalInt.empty());
  }
}
