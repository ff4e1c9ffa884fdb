package org.mkernel.runtime;

import java.io.IOException;
import java.lang.module.Configuration;
import java.lang.module.FindException;
import java.lang.module.ModuleFinder;
import java.lang.module.ModuleReference;
import java.lang.module.ResolutionException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.mkernel.api.Availability;
import org.mkernel.api.Config;
import org.mkernel.api.Failure;
import org.mkernel.api.PluginInfo;
import org.mkernel.api.UnavailableException;
import org.mkernel.api.UsageException;
import org.mkernel.api.spi.CollectiveProvider;
import org.mkernel.api.spi.DeviceProvider;
import org.mkernel.api.spi.KernelSet;
import org.mkernel.api.spi.TransportProvider;

/**
 * Every provider that was found: those of the runtime's own layer (or of the class path), then
 * those of the plug-in folder, one layer per sub-folder. A provider that can't be made becomes an
 * entry of {@link #infos}, and stops nobody else.
 */
final class Plugins {
  private static final Logger LOG = LogManager.getLogger(Plugins.class);

  private final List<CollectiveProvider> collectives = new ArrayList<>();
  private final List<TransportProvider> transports = new ArrayList<>();
  private final List<DeviceProvider> devices = new ArrayList<>();
  private final List<KernelSet> kernelSets = new ArrayList<>();
  private final List<PluginInfo> infos = new ArrayList<>();

  Plugins(Config config) {
    Module own = Plugins.class.getModule();
    ModuleLayer layer = own.getLayer();
    if (layer == null) {
      ClassLoader loader = Plugins.class.getClassLoader();
      load(ServiceLoader.load(CollectiveProvider.class, loader), null, this::add);
      load(ServiceLoader.load(TransportProvider.class, loader), null, this::add);
      load(ServiceLoader.load(DeviceProvider.class, loader), null, this::add);
      load(ServiceLoader.load(KernelSet.class, loader), null, this::add);
    } else {
      loadLayer(layer, false);
      config.option("plugins").ifPresent(folder -> loadFolder(layer, Path.of(folder)));
    }
  }

  List<CollectiveProvider> collectives() {
    return collectives;
  }

  List<TransportProvider> transports() {
    return transports;
  }

  List<DeviceProvider> devices() {
    return devices;
  }

  List<KernelSet> kernelSets() {
    return kernelSets;
  }

  List<PluginInfo> infos() {
    return List.copyOf(infos);
  }

  CollectiveProvider collective(String name) {
    return find("operator", name, collectives, CollectiveProvider::name);
  }

  TransportProvider transport(String name) {
    return find("transport", name, transports, TransportProvider::name);
  }

  DeviceProvider device(String name) {
    return find("device", name, devices, DeviceProvider::name);
  }

  private static <T> T find(String what, String name, List<T> all, Function<T, String> nameOf) {
    for (T provider : all) {
      if (nameOf.apply(provider).equals(name)) {
        return provider;
      }
    }
    Set<String> names = all.stream().map(nameOf).collect(Collectors.toCollection(TreeSet::new));
    throw new UnavailableException(
        "no %s is named \"%s\"; there are %s".formatted(what, name, names),
        Failure.remedy(
            "correct the name, or put the jar that provides it on the module path or into the"
                + " plug-in folder"));
  }

  private void loadLayer(ModuleLayer layer, boolean onlyThis) {
    ModuleLayer filter = onlyThis ? layer : null;
    load(ServiceLoader.load(layer, CollectiveProvider.class), filter, this::add);
    load(ServiceLoader.load(layer, TransportProvider.class), filter, this::add);
    load(ServiceLoader.load(layer, DeviceProvider.class), filter, this::add);
    load(ServiceLoader.load(layer, KernelSet.class), filter, this::add);
  }

  private interface Adder<T> {
    void add(T provider, String module);
  }

  private <T> void load(
      ServiceLoader<T> loader,
      @org.jspecify.annotations.Nullable ModuleLayer onlyIn,
      Adder<T> adder) {
    Iterator<ServiceLoader.Provider<T>> providers = loader.stream().iterator();
    while (true) {
      Class<? extends T> type = null;
      try {
        if (!providers.hasNext()) {
          return;
        }
        ServiceLoader.Provider<T> provider = providers.next();
        type = provider.type();
        if (onlyIn == null || onlyIn.equals(type.getModule().getLayer())) {
          adder.add(provider.get(), moduleOf(type));
        }
      } catch (ServiceConfigurationError | LinkageError | RuntimeException e) {
        String name = type == null ? "(unknown)" : type.getName();
        LOG.warn("a provider could not be made: {}", name, e);
        infos.add(
            new PluginInfo(
                "provider",
                name,
                type == null ? "(unknown)" : moduleOf(type),
                "",
                new Availability.Unavailable(
                    rootCause(e), "use a plug-in that was built for this version of mkernel")));
      }
    }
  }

  private static String moduleOf(Class<?> type) {
    String name = type.getModule().getName();
    return name == null ? "(class path)" : name;
  }

  static String rootCause(Throwable failure) {
    Throwable root = failure;
    for (Throwable next = root.getCause(); next != null; next = root.getCause()) {
      root = next;
    }
    return root.getMessage() == null ? root.getClass().getSimpleName() : root.getMessage();
  }

  private void add(CollectiveProvider p, String module) {
    if (unique("collective", p.name(), module, collectives, CollectiveProvider::name)) {
      collectives.add(p);
      infos.add(
          new PluginInfo(
              "collective", p.name(), module, p.description(), new Availability.Available("")));
    }
  }

  private void add(TransportProvider p, String module) {
    if (unique("transport", p.name(), module, transports, TransportProvider::name)) {
      transports.add(p);
      String reach = p.reach() == TransportProvider.Reach.NODE ? "inside a node" : "between nodes";
      infos.add(
          new PluginInfo(
              "transport",
              p.name(),
              module,
              reach + (p.emulated() ? ", emulated" : ""),
              p.availability()));
    }
  }

  private void add(DeviceProvider p, String module) {
    if (unique("device", p.name(), module, devices, DeviceProvider::name)) {
      devices.add(p);
      infos.add(new PluginInfo("device", p.name(), module, "", p.availability()));
    }
  }

  private void add(KernelSet p, String module) {
    kernelSets.add(p);
    infos.add(new PluginInfo("kernel set", p.device(), module, "", new Availability.Available("")));
  }

  private <T> boolean unique(
      String kind, String name, String module, List<T> known, Function<T, String> nameOf) {
    boolean named = name.matches("[a-z0-9]+(-[a-z0-9]+)*");
    if (named && known.stream().noneMatch(k -> nameOf.apply(k).equals(name))) {
      return true;
    }
    infos.add(
        new PluginInfo(
            kind,
            name,
            module,
            "",
            named
                ? new Availability.Unavailable(
                    "another %s of this name was found first".formatted(kind),
                    "remove one of the two")
                : new Availability.Unavailable(
                    "its name is \"%s\"".formatted(name),
                    "name it in lower case, digits and single hyphens")));
    return false;
  }

  private void loadFolder(ModuleLayer parent, Path folder) {
    List<Path> subFolders = new ArrayList<>();
    try {
      if (!Files.isDirectory(folder)) {
        throw new UsageException("plugins is %s, which is no folder".formatted(folder));
      }
      refuseWorldWritable(folder);
      try (DirectoryStream<Path> entries = Files.newDirectoryStream(folder, Files::isDirectory)) {
        entries.forEach(subFolders::add);
      }
      subFolders.sort(null);
      for (Path subFolder : subFolders) {
        refuseWorldWritable(subFolder);
      }
    } catch (IOException e) {
      throw new UnavailableException(
          "the plug-in folder %s can't be read: %s".formatted(folder, rootCause(e)),
          Failure.UNKNOWN,
          e);
    }
    for (Path subFolder : subFolders) {
      try {
        ModuleFinder finder = ModuleFinder.of(subFolder);
        Set<String> roots =
            finder.findAll().stream()
                .map(ModuleReference::descriptor)
                .map(d -> d.name())
                .collect(Collectors.toSet());
        Configuration configuration =
            parent.configuration().resolveAndBind(finder, ModuleFinder.of(), roots);
        loadLayer(
            parent.defineModulesWithOneLoader(configuration, Plugins.class.getClassLoader()), true);
        LOG.info("plug-ins of {}: {}", subFolder, roots);
      } catch (FindException | ResolutionException | LayerInstantiationException e) {
        infos.add(
            new PluginInfo(
                "plug-in folder",
                String.valueOf(subFolder.getFileName()),
                subFolder.toString(),
                "",
                new Availability.Unavailable(
                    rootCause(e),
                    "the folder holds all modules of one plug-in, none that mkernel itself has")));
      }
    }
  }

  private static void refuseWorldWritable(Path folder) throws IOException {
    if (Files.getPosixFilePermissions(folder).contains(PosixFilePermission.OTHERS_WRITE)) {
      throw new UsageException(
          "the plug-in folder %s is writable by everybody; remedy: chmod o-w".formatted(folder));
    }
  }
}
