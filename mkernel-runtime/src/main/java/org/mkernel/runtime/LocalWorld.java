package org.mkernel.runtime;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.mkernel.api.ClosedException;
import org.mkernel.api.Config;
import org.mkernel.api.Failure;
import org.mkernel.api.MKernelException;
import org.mkernel.api.PeerLostException;
import org.mkernel.api.Rank;
import org.mkernel.api.UsageException;
import org.mkernel.api.World;
import org.mkernel.api.schedule.Topology;
import org.mkernel.api.spi.Abort;
import org.mkernel.api.spi.DeviceProvider;
import org.mkernel.api.spi.Problem;

/** A world all of whose ranks live in this process. */
final class LocalWorld implements World {
  private static final Logger LOG = LogManager.getLogger(LocalWorld.class);

  private final Config config;
  private final Plugins plugins;
  private final Topology topology;
  private final Consumer<LocalWorld> onClose;
  private final Abort abort = new Abort();
  private final LocalGroup group;
  private final LaunchLedger ledger = new LaunchLedger();
  private final List<LocalRank> ranks = new ArrayList<>();
  private final Map<Problem, PlannedSchedule> planned = new ConcurrentHashMap<>();
  private final Map<Integer, OperationGroup> operations = new ConcurrentHashMap<>();
  private final AtomicBoolean closed = new AtomicBoolean();
  private final long waitNanos;
  private final Optional<Selection.Transport> intra;
  private final Optional<Selection.Transport> inter;
  private final @Nullable ProxyThread proxy;
  private final Trace trace;

  LocalWorld(Config config, Plugins plugins, Topology topology, Consumer<LocalWorld> onClose) {
    this.config = config;
    this.plugins = plugins;
    this.topology = topology;
    this.onClose = onClose;
    this.waitNanos = config.deadline().toNanos();
    this.group = new LocalGroup(topology.size(), waitNanos, abort);
    DeviceProvider device = Selection.device(config, plugins);
    boolean shared = topology.nodes() < topology.size();
    this.intra = shared ? Optional.of(Selection.intra(config, plugins)) : Optional.empty();
    this.inter =
        topology.nodes() > 1 ? Optional.of(Selection.inter(config, plugins)) : Optional.empty();
    this.trace = Trace.of(config.option("trace"));
    this.proxy = inter.isPresent() ? new ProxyThread(config.threads(), abort) : null;
    boolean open = false;
    try {
      for (int rank = 0; rank < topology.size(); rank++) {
        ranks.add(new LocalRank(this, rank, device, config.threads()));
      }
      eachLocalRank(rank -> ((LocalRank) rank).openPorts(intra, inter));
      open = true;
    } finally {
      if (!open) {
        close();
      }
    }
  }

  Config config() {
    return config;
  }

  Plugins plugins() {
    return plugins;
  }

  Abort abort() {
    return abort;
  }

  LocalGroup group() {
    return group;
  }

  LaunchLedger ledger() {
    return ledger;
  }

  long waitNanos() {
    return waitNanos;
  }

  Trace trace() {
    return trace;
  }

  Optional<Selection.Transport> intra() {
    return intra;
  }

  Optional<Selection.Transport> inter() {
    return inter;
  }

  /** The thread that serves the wires; there is one as soon as there are two nodes. */
  ProxyThread proxy() {
    if (proxy == null) {
      throw new IllegalStateException("a world of one node has no proxy");
    }
    return proxy;
  }

  PlannedSchedule planned(Problem problem) {
    return planned.computeIfAbsent(
        problem, p -> PlannedSchedule.of(plugins.collective(p.operator()), p));
  }

  OperationGroup operation(int number) {
    return operations.computeIfAbsent(number, n -> new OperationGroup(topology.size()));
  }

  /** Ends the world: every wait of every rank ends. The first cause stands. */
  void abort(MKernelException cause) {
    if (abort.set(cause)) {
      LOG.debug("the world is dead: {}", cause.getMessage());
      group.wake();
    }
  }

  void throwIfDead() {
    Optional<MKernelException> cause = abort.cause();
    if (cause.isPresent()) {
      throw cause.get().copy();
    }
    if (closed.get()) {
      throw new ClosedException("this world was closed");
    }
  }

  @Override
  public Topology topology() {
    return topology;
  }

  @Override
  public List<Rank> localRanks() {
    return List.copyOf(ranks);
  }

  @Override
  public void eachLocalRank(Consumer<Rank> body) {
    throwIfDead();
    AtomicReference<@Nullable Throwable> first = new AtomicReference<>();
    List<Thread> threads = new ArrayList<>();
    for (LocalRank rank : ranks) {
      Thread thread =
          config
              .threads()
              .newThread(() -> {
                try {
                  body.accept(rank);
                } catch (Throwable e) {
                  first.compareAndSet(null, e);
                  abort(causeOf(rank.index(), e));
                }
              });
      thread.setName("mkernel-rank-" + rank.index());
      thread.setDaemon(true);
      threads.add(thread);
      thread.start();
    }
    boolean interrupted = false;
    for (Thread thread : threads) {
      while (true) {
        try {
          thread.join();
          break;
        } catch (InterruptedException e) {
          interrupted = true;
          abort(new ClosedException("the thread that ran the ranks was interrupted"));
          threads.forEach(Thread::interrupt);
        }
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
    Throwable failure = first.get();
    if (failure instanceof Error e) {
      throw e;
    }
    if (failure instanceof RuntimeException e) {
      throw e;
    }
    if (failure != null) {
      throw new IllegalStateException("a rank threw a checked exception", failure);
    }
  }

  private static MKernelException causeOf(int rank, Throwable e) {
    return e instanceof MKernelException m
        ? m
        : new PeerLostException(
            "rank %d ended with %s".formatted(rank, e),
            Failure.UNKNOWN.withRank(rank).withPeer(rank),
            e);
  }

  @Override
  public Optional<MKernelException> failure() {
    return abort.cause();
  }

  @Override
  public void close() {
    if (!closed.compareAndSet(false, true)) {
      return;
    }
    if (ranks.stream().anyMatch(LocalRank::inFlight)) {
      abort(new ClosedException("the world was closed while an operation was in flight"));
    }
    abort.set(new ClosedException("this world was closed"));
    group.wake();
    ranks.forEach(LocalRank::stopOperations);
    operations.values().forEach(OperationGroup::free);
    if (proxy != null) {
      proxy.stop();
    }
    ranks.forEach(LocalRank::close);
    onClose.accept(this);
    trace.write(topology);
  }

  /** Checks the number of a new operation. */
  static int checkedOperation(int number) {
    if (number >= LaunchLedger.MAX_OPERATIONS) {
      throw new UsageException(
          "a world prepares at most %d operations; close it and join anew"
              .formatted(LaunchLedger.MAX_OPERATIONS));
    }
    return number;
  }
}
