package org.mkernel.cli.doctor;

import java.util.Map;
import java.util.TreeMap;

/**
 * What the Java virtual machine says of itself.
 *
 * @param feature its feature release
 * @param version its version
 * @param maxHeap the largest heap, in bytes
 * @param processors those that it counts on
 * @param nativeAccess by module that calls native code, whether it may
 * @param versions by module of mkernel, its version
 */
record JavaFacts(
    int feature,
    String version,
    long maxHeap,
    int processors,
    Map<String, Boolean> nativeAccess,
    Map<String, String> versions) {
  private static final String[] CALL_NATIVE_CODE = {
    "org.bytedeco.javacpp",
    "org.bytedeco.openblas",
    "org.bytedeco.cuda",
    "org.mkernel.kernels.host",
    "org.mkernel.kernels.cuda",
    "org.mkernel.transport.rdma",
    "org.mkernel.transport.tcp"
  };

  JavaFacts {
    nativeAccess = Map.copyOf(nativeAccess);
    versions = Map.copyOf(versions);
  }

  static JavaFacts ofThisProcess() {
    Map<String, Boolean> access = new TreeMap<>();
    Map<String, String> versions = new TreeMap<>();
    ModuleLayer layer = JavaFacts.class.getModule().getLayer();
    if (layer == null) {
      access.put("(class path)", JavaFacts.class.getModule().isNativeAccessEnabled());
    } else {
      for (String name : CALL_NATIVE_CODE) {
        layer
            .findModule(name)
            .ifPresent(module -> access.put(name, module.isNativeAccessEnabled()));
      }
      for (Module module : layer.modules()) {
        if (module.getName().startsWith("org.mkernel.")) {
          versions.put(module.getName(), module.getDescriptor().rawVersion().orElse("(none)"));
        }
      }
    }
    return new JavaFacts(
        Runtime.version().feature(),
        Runtime.version().toString(),
        Runtime.getRuntime().maxMemory(),
        Runtime.getRuntime().availableProcessors(),
        access,
        versions);
  }
}
