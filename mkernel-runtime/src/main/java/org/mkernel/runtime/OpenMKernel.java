package org.mkernel.runtime;

import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.mkernel.api.ClosedException;
import org.mkernel.api.Config;
import org.mkernel.api.MKernel;
import org.mkernel.api.MKernelException;
import org.mkernel.api.PluginInfo;
import org.mkernel.api.World;
import org.mkernel.api.schedule.Topology;
import org.mkernel.api.spi.CollectiveProvider;
import org.mkernel.runtime.join.Introduction;
import org.mkernel.runtime.join.Launch;
import org.mkernel.runtime.join.Membership;

/** One open mkernel: the plug-ins that were found, and the worlds made from them. */
final class OpenMKernel implements MKernel {
  private static final Logger LOG = LogManager.getLogger(OpenMKernel.class);

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
    throwIfClosed();
    Optional<Introduction> introduction =
        config.exchange().map(exchange -> Introduction.by(exchange, config));
    Launch launch = introduction.map(Introduction::launch).orElseGet(() -> Launch.of(config));
    if (launch.size() == 1) {
      return local(1, 1);
    }
    Membership membership =
        introduction.map(Introduction::meet).orElseGet(() -> Membership.join(launch, config));
    boolean made = false;
    try {
      Topology topology = Agreement.topology(membership, launch);
      LocalWorld world = LocalWorld.joined(config, plugins, topology, membership, this::forget);
      made = true;
      LOG.info(
          "rank {} of {} joined: {}; {}",
          launch.rank(),
          launch.size(),
          topology,
          launch.describe());
      return remember(world);
    } catch (MKernelException e) {
      membership.abort(e);
      throw e;
    } finally {
      if (!made) {
        membership.close();
      }
    }
  }

  @Override
  public World local(int nodes, int ranksPerNode) {
    Topology topology = Topology.of(nodes, ranksPerNode);
    throwIfClosed();
    return remember(LocalWorld.local(config, plugins, topology, this::forget));
  }

  private World remember(LocalWorld world) {
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
