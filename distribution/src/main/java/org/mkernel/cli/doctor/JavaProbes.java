package org.mkernel.cli.doctor;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.TreeSet;
import org.mkernel.api.Availability;
import org.mkernel.api.MKernelException;
import org.mkernel.api.PluginInfo;
import org.mkernel.cli.doctor.Finding.Evidence;

/** The virtual machine, and what mkernel found when it was opened. */
final class JavaProbes {
  private static final int LEAST_RELEASE = 25;

  private JavaProbes() {}

  static void java(Machine machine, Findings out) {
    JavaFacts java = machine.java();
    Evidence version = new Evidence("Runtime.version()", java.version());
    List<String> refused =
        new TreeMap<>(java.nativeAccess())
            .entrySet().stream().filter(e -> !e.getValue()).map(Map.Entry::getKey).toList();
    if (java.feature() < LEAST_RELEASE) {
      out.error(
          "Java " + java.version(),
          "mkernel is made for Java %d".formatted(LEAST_RELEASE),
          "use the image's own bin/mkernel, or a JDK %d".formatted(LEAST_RELEASE),
          version);
    } else if (!refused.isEmpty()) {
      out.warning(
          "%d modules may not call native code".formatted(refused.size()),
          "Java warns at the first call, and later releases refuse it",
          refused.contains("(class path)")
              ? "start Java with --enable-native-access=ALL-UNNAMED"
              : "start Java with --enable-native-access=" + String.join(",", refused),
          new Evidence("Module.isNativeAccessEnabled()", refused.toString()));
    } else {
      out.ok("Java " + java.version(), version);
    }
  }

  static void modules(Machine machine, Findings out) {
    Map<String, String> versions = new TreeMap<>(machine.java().versions());
    Evidence evidence = new Evidence("module versions", versions.toString());
    if (new TreeSet<>(versions.values()).size() > 1) {
      out.error(
          "modules of mkernel are of different versions",
          "they call one another in ways that change between versions",
          "take all of them from one version",
          evidence);
    } else if (versions.isEmpty()) {
      out.notApplicable("mkernel is on the class path, where versions are not told");
    } else {
      out.ok(
          "%d modules of version %s"
              .formatted(versions.size(), versions.values().iterator().next()),
          evidence);
    }
  }

  static void providers(Machine machine, Findings out) {
    Evidence folder =
        new Evidence("option plugins", machine.config().option("plugins").orElse("(not set)"));
    List<PluginInfo> all;
    try {
      all = machine.providers().get();
    } catch (MKernelException e) {
      out.error(
          String.valueOf(e.getMessage()),
          "mkernel can't be opened",
          e.failure().remedy().orElse("correct the option"),
          folder);
      return;
    }
    boolean good = true;
    for (PluginInfo info : all) {
      boolean broken = List.of("provider", "plug-in folder").contains(info.kind());
      if (broken && info.availability() instanceof Availability.Unavailable missing) {
        good = false;
        out.error(
            "%s %s can't be used".formatted(info.kind(), info.name()),
            missing.reason(),
            missing.remedy(),
            new Evidence("found in", info.module()),
            folder);
      }
    }
    if (good) {
      out.ok("%d providers were found".formatted(all.size()), folder);
    }
  }

  /** Whether the machine has something better than what would be used. */
  static void fallback(Machine machine, Findings out) {
    List<PluginInfo> all;
    try {
      all = machine.providers().get();
    } catch (MKernelException e) {
      out.notApplicable("mkernel can't be opened");
      return;
    }
    boolean good = true;
    Optional<Availability.Unavailable> rdma = missing(all, "transport", "rdma");
    if (!machine.adapters().isEmpty() && rdma.isPresent()) {
      good = false;
      out.warning(
          "there is an RDMA adapter, but the transport rdma can't be used",
          rdma.get().reason() + "; traffic between nodes would go over tcp, several times slower",
          rdma.get().remedy(),
          new Evidence("/sys/class/infiniband", machine.adapters().toString()));
    }
    Optional<Availability.Unavailable> cuda = missing(all, "device", "cuda");
    if (!machine.gpus().isEmpty() && cuda.isPresent()) {
      good = false;
      out.warning(
          "there is a GPU, but the device cuda can't be used",
          cuda.get().reason(),
          cuda.get().remedy(),
          new Evidence("/sys/bus/pci/devices", machine.gpus().toString()));
    }
    if (good) {
      out.ok("what the machine has can be used");
    }
  }

  private static Optional<Availability.Unavailable> missing(
      List<PluginInfo> all, String kind, String name) {
    for (PluginInfo info : all) {
      if (info.kind().equals(kind)
          && info.name().equals(name)
          && info.availability() instanceof Availability.Unavailable missing) {
        return Optional.of(missing);
      }
    }
    return Optional.empty();
  }
}
