package org.mkernel.kernels.cuda;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.mkernel.api.spi.KernelBinaries;

/** Finds the modules that ship machine code for GPUs. */
final class KernelBinariesLoader {
  private static final Logger LOG = LogManager.getLogger(KernelBinariesLoader.class);

  private KernelBinariesLoader() {}

  static List<KernelBinaries> load() {
    ModuleLayer layer = KernelBinariesLoader.class.getModule().getLayer();
    ServiceLoader<KernelBinaries> loader =
        layer == null
            ? ServiceLoader.load(KernelBinaries.class, KernelBinariesLoader.class.getClassLoader())
            : ServiceLoader.load(layer, KernelBinaries.class);
    List<KernelBinaries> all = new ArrayList<>();
    Iterator<KernelBinaries> found = loader.iterator();
    while (true) {
      try {
        if (!found.hasNext()) {
          return all;
        }
        KernelBinaries binaries = found.next();
        if (binaries.device().equals(CudaDevice.KIND)) {
          all.add(binaries);
        }
      } catch (ServiceConfigurationError | LinkageError e) {
        LOG.warn("a module that ships machine code can't be used: {}", e.toString());
      }
    }
  }
}
