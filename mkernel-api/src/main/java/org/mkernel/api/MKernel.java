package org.mkernel.api;

import java.util.List;
import java.util.ServiceLoader;
import org.mkernel.api.spi.CollectiveProvider;
import org.mkernel.api.spi.RuntimeProvider;

/** The way in. Thread-safe. */
public interface MKernel extends AutoCloseable {
  /**
   * Opens mkernel: finds the runtime and the plug-ins.
   *
   * @param config settings
   * @return a new instance
   * @throws UnavailableException when there is no runtime on the module path or class path
   */
  static MKernel open(Config config) {
    ModuleLayer layer = MKernel.class.getModule().getLayer();
    ServiceLoader<RuntimeProvider> loader =
        layer == null
            ? ServiceLoader.load(RuntimeProvider.class, MKernel.class.getClassLoader())
            : ServiceLoader.load(layer, RuntimeProvider.class);
    return loader
        .findFirst()
        .orElseThrow(() ->
            new UnavailableException(
                "no runtime of mkernel was found",
                Failure.remedy(
                    "put mkernel-runtime on the module path or class path, with a collective and"
                        + " a device such as mkernel-collectives and mkernel-kernels-host")))
        .open(config);
  }

  /**
   * Joins the world that a launcher set up, or the ranks that {@link Config#exchange} reaches;
   * without either, a world of one rank.
   *
   * @return the world
   * @throws UnavailableException when the environment asks for what is not there, or the exchange
   *     fails
   * @throws PeerLostException when ranks are missing at the deadline of joining
   * @throws MismatchException when the ranks are of different versions, secrets or worlds
   * @throws UsageException when variables contradict each other, or what the exchange returns can't
   *     be what the ranks gave
   */
  World join();

  /**
   * Makes a world in this process, for tests, tools and embedding without a network: between its
   * nodes traffic goes through an emulated NIC unless a transport was set.
   *
   * @param nodes nodes, at least 1
   * @param ranksPerNode ranks on each, at least 1
   * @return the world
   */
  World local(int nodes, int ranksPerNode);

  /**
   * Everything that was found, and what can't be used and why.
   *
   * @return one entry per provider
   */
  List<PluginInfo> plugins();

  /**
   * Finds an operator.
   *
   * @param name its name
   * @return its provider
   * @throws UnavailableException when there is none; the message lists those that there are
   */
  CollectiveProvider collective(String name);

  /** Closes all worlds. Closing twice does nothing. */
  @Override
  void close();
}
