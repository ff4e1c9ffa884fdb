package org.mkernel.runtime;

import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.mkernel.api.ClosedException;
import org.mkernel.api.Config;
import org.mkernel.api.Failure;
import org.mkernel.api.MKernel;
import org.mkernel.api.PluginInfo;
import org.mkernel.api.UnavailableException;
import org.mkernel.api.World;
import org.mkernel.api.schedule.Topology;
import org.mkernel.api.spi.CollectiveProvider;

/** One open mkernel: the plug-ins that were found, and the worlds made from them. */
final class OpenMKernel implements MKernel {
  private final Config config;
  private final Plugins plugins;
  private final Set<LocalWorld> worlds = new LinkedHashSet<>();
  private boolean closed;

  OpenMKernel(Config config) {
    this.config = config;
    this.plugins = new Plugins(config);
  }

  @Override
  public World join() {
    String size = config.option("world-size").orElse("1");
    if (!size.equals("1")) {
      throw new UnavailableException(
          "MKERNEL_WORLD_SIZE is \"%s\"; this version joins worlds of one process only"
              .formatted(size),
          Failure.remedy("unset it, or make a world in this process with MKernel.local"));
    }
    return local(1, 1);
  }

  @Override
  public World local(int nodes, int ranksPerNode) {
    Topology topology = Topology.of(nodes, ranksPerNode);
    throwIfClosed();
    LocalWorld world = new LocalWorld(config, plugins, topology, this::forget);
    synchronized (worlds) {
      if (!closed) {
        worlds.add(world);
        return world;
      }
    }
    world.close();
    throw closed();
  }

  private void forget(LocalWorld world) {
    synchronized (worlds) {
      worlds.remove(world);
    }
  }

  @Override
  public List<PluginInfo> plugins() {
    return plugins.infos();
  }

  @Override
  public CollectiveProvider collective(String name) {
    return plugins.collective(name);
  }

  @Override
  public void close() {
    List<LocalWorld> open;
    synchronized (worlds) {
      closed = true;
      open = List.copyOf(worlds);
    }
    open.forEach(LocalWorld::close);
  }

  private void throwIfClosed() {
    synchronized (worlds) {
      if (closed) {
        throw closed();
      }
    }
  }

  private static ClosedException closed() {
    return new ClosedException("this MKernel was closed");
  }
}
