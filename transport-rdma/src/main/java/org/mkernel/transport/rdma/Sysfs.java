package org.mkernel.transport.rdma;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * What the kernel tells of RDMA adapters in files. Asked without libibverbs, so that a machine
 * without adapters never loads it.
 *
 * @param sys where sysfs is mounted
 * @param dev where device files are
 */
record Sysfs(Path sys, Path dev) {
  /** The kernel's table has at most this many entries on any adapter known. */
  private static final int MAX_GIDS = 4096;

  /**
   * A port.
   *
   * @param number counted from 1
   * @param state as {@code ACTIVE} or {@code DOWN}
   * @param ethernet whether its link is Ethernet
   */
  record PortFacts(int number, String state, boolean ethernet) {
    boolean isActive() {
      return state.equals("ACTIVE");
    }

    @Override
    public String toString() {
      return "port %d %s".formatted(number, state.toLowerCase(Locale.ROOT));
    }
  }

  /**
   * An adapter.
   *
   * @param name as libibverbs calls it
   * @param ports its ports, by number
   */
  record AdapterFacts(String name, List<PortFacts> ports) {
    Optional<PortFacts> activePort() {
      return ports.stream().filter(PortFacts::isActive).findFirst();
    }

    @Override
    public String toString() {
      return name + " " + ports;
    }
  }

  /**
   * All adapters, by name; those of one name with different numbers in the order of the numbers.
   */
  List<AdapterFacts> adapters() {
    List<AdapterFacts> all = new ArrayList<>();
    for (Path folder : list(sys.resolve("class/infiniband"))) {
      List<PortFacts> ports = new ArrayList<>();
      for (Path port : list(folder.resolve("ports"))) {
        String name = String.valueOf(port.getFileName());
        if (name.matches("[0-9]{1,3}")) {
          ports.add(
              new PortFacts(
                  Integer.parseInt(name),
                  read(port.resolve("state")).replaceFirst("^[0-9]+: *", ""),
                  read(port.resolve("link_layer")).equals("Ethernet")));
        }
      }
      ports.sort(Comparator.comparingInt(PortFacts::number));
      all.add(new AdapterFacts(String.valueOf(folder.getFileName()), List.copyOf(ports)));
    }
    all.sort(
        Comparator.comparing((AdapterFacts a) -> a.name().replaceAll("[0-9]+", "#"))
            .thenComparingInt(a -> a.name().length())
            .thenComparing(AdapterFacts::name));
    return List.copyOf(all);
  }

  /** The file by which an adapter is used, when there is one. */
  Optional<Path> deviceFile(String adapter) {
    for (Path verbs : list(sys.resolve("class/infiniband_verbs"))) {
      if (read(verbs.resolve("ibdev")).equals(adapter)) {
        return Optional.of(dev.resolve("infiniband").resolve(String.valueOf(verbs.getFileName())));
      }
    }
    return Optional.empty();
  }

  /** The table of global identifiers of a port; entries not in use are left out. */
  List<Gid> gids(String adapter, int port) {
    Path folder = sys.resolve("class/infiniband/%s/ports/%d".formatted(adapter, port));
    List<Gid> table = new ArrayList<>();
    for (int index = 0; index < MAX_GIDS; index++) {
      Path entry = folder.resolve("gids/" + index);
      if (!Files.exists(entry)) {
        break;
      }
      Gid gid = new Gid(index, read(entry), read(folder.resolve("gid_attrs/types/" + index)));
      if (gid.isSet()) {
        table.add(gid);
      }
    }
    return table;
  }

  private static List<Path> list(Path folder) {
    if (!Files.isDirectory(folder)) {
      return List.of();
    }
    try (Stream<Path> entries = Files.list(folder)) {
      return entries.sorted().toList();
    } catch (IOException e) {
      return List.of(); // It went away while we looked: an adapter can be unplugged.
    }
  }

  /** A file's one line; empty when it can't be read, as the kernel does for unset entries. */
  private static String read(Path file) {
    try {
      return Files.readString(file, StandardCharsets.US_ASCII).strip();
    } catch (IOException e) {
      return "";
    }
  }
}
