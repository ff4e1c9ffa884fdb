package org.mkernel.cli.doctor;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;

/** Limits of the control groups that this process is in, of either version. */
final class Cgroup {
  private static final String ROOT = "/sys/fs/cgroup";

  private Cgroup() {}

  /** The tightest limit: each group up to the root has one of its own. */
  static Optional<Reading> limit(
      Machine machine, String file, String controller, String fileOfVersion1) {
    List<Reading> limits = new ArrayList<>();
    for (String folder : folders(machine, "0::", ROOT)) {
      limits.add(machine.read(folder + "/" + file));
    }
    for (String folder : folders(machine, ":" + controller + ":", ROOT + "/" + controller)) {
      limits.add(machine.read(folder + "/" + fileOfVersion1));
    }
    return limits.stream()
        .filter(limit -> limit.number().orElse(-1) >= 0)
        .min(Comparator.comparingLong(limit -> limit.number().getAsLong()));
  }

  /** The folder of a hierarchy's group of this process, then its parents. */
  static List<String> folders(Machine machine, String mark, String root) {
    List<String> folders = new ArrayList<>();
    String path =
        machine
            .read("/proc/self/cgroup")
            .lines()
            .filter(line -> line.contains(mark))
            .map(line -> line.substring(line.indexOf(mark) + mark.length()))
            .filter(p -> p.startsWith("/") && !p.contains(".."))
            .findFirst()
            .orElse("");
    for (int end = path.length(); end > 0; end = path.lastIndexOf('/', end - 1)) {
      folders.add(root + path.substring(0, end));
    }
    folders.add(root);
    return folders;
  }
}
