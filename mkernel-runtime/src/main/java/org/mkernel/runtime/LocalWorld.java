package org.mkernel.runtime;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.function.IntUnaryOperator;
import java.util.stream.IntStream;
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
import org.mkernel.runtime.join.Membership;

/** The ranks of a world that live in this process: all of them, or the one that joined. */
final class LocalWorld implements World {
  private static final Logger LOG = LogManager.getLogger(LocalWorld.class);

  private final Config config;
  private final Plugins plugins;
  private final Topology topology;
  private final Consumer<LocalWorld> onClose;
  private final Abort abort = new Abort();
  private final Group group;
  private final int[] here;
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
  private final Optional<WorldPart> part;
  private final Set<LocalWorld> parts = new LinkedHashSet<>();

  /** A world of this process. */
  static LocalWorld local(
      Config config, Plugins plugins, Topology topology, Consumer<LocalWorld> onClose) {
    return new LocalWorld(config, plugins, topology, Optional.empty(), Optional.empty(), onClose);
  }

  /** The place of this process in a world of several; closed with the world. */
  static LocalWorld joined(
      Config config,
      Plugins plugins,
      Topology topology,
      Membership membership,
      Consumer<LocalWorld> onClose) {
    return new LocalWorld(
        config, plugins, topology, Optional.of(membership), Optional.empty(), onClose);
  }

  private LocalWorld(
      Config config,
      Plugins plugins,
      Topology topology,
      Optional<Membership> membership,
      Optional<WorldPart> part,
      Consumer<LocalWorld> onClose) {
    this.config = config;
    this.part = part;
    this.plugins = plugins;
    this.topology = topology;
    this.onClose = onClose;
    this.waitNanos = config.deadline().toNanos();
    this.here =
        membership
            .map(m -> new int[] {m.rank()})
            .orElseGet(() -> IntStream.range(0, topology.size()).toArray());
    this.trace =
        Trace.of(
            config
                .option("trace")
                .map(file -> part.map(p -> withSuffix(file, "-group" + p.group())).orElse(file))
                .map(file -> traceOf(file, membership.isPresent(), here[0])));
    DeviceProvider device = Selection.device(config, plugins);
    Selection.Reachable reachable =
        membership
            .map(m -> Agreement.reachable(m, plugins))
            .orElseGet(() -> new Selection.Reachable(1, Map.of()));
    boolean shared = topology.nodes() < topology.size();
    this.intra =
        shared ? Optional.of(Selection.intra(config, plugins, reachable)) : Optional.empty();
    this.inter =
        topology.nodes() > 1
            ? Optional.of(Selection.inter(config, plugins, reachable))
            : Optional.empty();
    membership.ifPresent(m -> Agreement.check(m, device, intra, inter));
    this.proxy = inter.isPresent() ? new ProxyThread(config.threads(), abort) : null;
    this.group =
        membership.isPresent()
            ? new JoinedGroup(membership.get(), this)
            : new LocalGroup(topology.size(), waitNanos, abort, this::progress);
    if (group instanceof JoinedGroup joined) {
      joined.listen();
    }
    boolean open = false;
    try {
      for (int rank : here) {
        ranks.add(new LocalRank(this, rank, device, config.threads()));
      }
      eachLocalRank(rank -> ((LocalRank) rank).openPorts(intra, inter));
      open = true;
    } catch (MKernelException e) {
      abort(e);
      throw e;
    } finally {
      if (!open) {
        close();
      }
    }
  }

  /** Each process writes a trace of its own: all but rank 0's carry the rank in their name. */
  private static String traceOf(String file, boolean joined, int rank) {
    return joined && rank > 0 ? withSuffix(file, "-rank" + rank) : file;
  }

  private static String withSuffix(String file, String suffix) {
    int dot = file.lastIndexOf('.');
    int end = dot > file.lastIndexOf('/') ? dot : file.length();
    return file.substring(0, end) + suffix + file.substring(end);
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

  Group group() {
    return group;
  }

  /** What transports are given: settings, what they must know of the world, and no secrets. */
  Map<String, String> transportOptions() {
    Map<String, String> options = new HashMap<>(config.options());
    options.keySet().removeAll(List.of("secret", "secret-file"));
    options.putAll(group.options());
    return Map.copyOf(options);
  }

  /** Whether the node of a rank has ranks in other processes. */
  boolean sharesMemory(int rank) {
    return here.length < topology.size() && topology.ranks(topology.node(rank)) > 1;
  }

  private List<Optional<Group.Progress>> progress(int operation) {
    return IntStream.range(0, topology.size())
        .mapToObj(rank -> Optional.of(progress(operation, rank)))
        .toList();
  }

  /** How far a rank of this process has come with an operation. */
  Group.Progress progress(int operation, int rank) {
    OperationGroup known = operations.get(operation);
    PreparedOperation member = known == null ? null : known.member(rank);
    return member == null ? new Group.Progress(0, List.of()) : member.progress();
  }

  /** An operation in words. */
  String name(int operation) {
    OperationGroup known = operations.get(operation);
    PreparedOperation member = known == null ? null : known.member(here[0]);
    return "operation %d%s".formatted(operation, member == null ? "" : ", " + member.name());
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
        problem,
        p -> SchedulePart.of(PlannedSchedule.of(plugins.collective(p.operator()), p), config));
  }

  OperationGroup operation(int number) {
    return operations.computeIfAbsent(
        number, n -> new OperationGroup(topology.size(), here.length));
  }

  /** Ends the world: every wait of every rank ends. The first cause stands. */
  void abort(MKernelException cause) {
    if (abort.set(cause)) {
      LOG.debug("the world is dead: {}", cause.getMessage());
      group.spread(cause);
    }
  }

  void throwIfAborted() {
    Optional<MKernelException> cause = abort.cause();
    if (cause.isPresent()) {
      throw cause.get().copy();
    }
  }

  void throwIfDead() {
    throwIfAborted();
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
  public List<World> split(IntUnaryOperator groupOf) {
    throwIfDead();
    List<WorldPart> all = WorldPart.of(this, groupOf);
    Optional<Membership> met = group.meetParts(all.stream().map(WorldPart::ranks).toList());
    List<World> worlds = new ArrayList<>();
    boolean made = false;
    try {
      for (WorldPart each : all) {
        if (Arrays.stream(each.ranks()).anyMatch(rank -> Arrays.binarySearch(here, rank) >= 0)) {
          worlds.add(remember(each, met));
        }
      }
      made = true;
      return List.copyOf(worlds);
    } finally {
      if (!made) {
        worlds.forEach(World::close);
        if (worlds.isEmpty()) {
          met.ifPresent(Membership::close);
        }
      }
    }
  }

  private LocalWorld remember(WorldPart each, Optional<Membership> met) {
    LocalWorld world =
        new LocalWorld(config, plugins, each.topology(), met, Optional.of(each), this::forget);
    synchronized (parts) {
      parts.add(world);
    }
    return world;
  }

  private void forget(LocalWorld world) {
    synchronized (parts) {
      parts.remove(world);
    }
  }

  /** A rank of this process, by its number in the world. */
  LocalRank localRank(int rank) {
    return ranks.get(Arrays.binarySearch(here, rank));
  }

  /** The same rank of the world that this one is a part of. */
  Optional<LocalRank> rankOfWhole(int rank) {
    return part.map(p -> p.whole(rank));
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
    List<LocalWorld> open;
    synchronized (parts) {
      open = List.copyOf(parts);
    }
    open.forEach(LocalWorld::close);
    if (ranks.stream().anyMatch(LocalRank::inFlight)) {
      abort(new ClosedException("the world was closed while an operation was in flight"));
    }
    if (!abort.isSet()) {
      group.leave();
    }
    abort(new ClosedException("this world was closed"));
    ranks.forEach(LocalRank::stopOperations);
    operations.values().forEach(OperationGroup::free);
    if (proxy != null) {
      proxy.stop();
    }
    ranks.forEach(LocalRank::close);
    group.close();
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
