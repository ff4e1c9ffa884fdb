package org.mkernel.transport.rdma;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.mkernel.api.Failure;
import org.mkernel.api.UnavailableException;
import org.mkernel.api.UsageException;

/** An opened adapter as one rank uses it: one port, one protection domain, its events. */
final class Adapter implements AutoCloseable {
  private static final Logger LOG = LogManager.getLogger(Adapter.class);
  private static final int PKEY_MASK = 0x7fff;
  private static final int ACTIVE = 4;
  private static final int MAX_EVENTS = 64;

  /** What libibverbs allows in one message, a power of two below its 2^31. */
  private static final long MESSAGE_BYTES = 1L << 30;

  /**
   * An event that ended something.
   *
   * @param queuePair number of the queue pair, or -1 for the whole adapter
   * @param text what happened
   * @param type libibverbs' number
   */
  record Fatal(int queuePair, String text, int type) {}

  private final Arena arena = Arena.ofShared();
  private final MemorySegment event = arena.allocate(Structs.EVENT);
  private final String name;
  private final RdmaOptions options;
  private final int port;
  private final long context;
  private final long domain;
  private final long maxQueue;
  private final long maxCompletions;
  private final long messageBytes;
  private final int pkeyIndex;
  private final int gidIndex;
  private final RdmaAddress address;
  private volatile List<Fatal> fatal = List.of();
  private volatile String noted = "";

  private Adapter(Sysfs sysfs, Sysfs.AdapterFacts facts, RdmaOptions options) {
    this.name = facts.name();
    this.options = options;
    this.port = port(facts, options);
    this.context = NativeCall.check(Verbs.open(name), "opening adapter " + name);
    long made = 0;
    try {
      MemorySegment device = arena.allocate(Structs.DEVICE);
      NativeCall.check(
          Verbs.queryDevice(context, device.address()), "asking adapter " + name + " for limits");
      maxQueue = Structs.longOf(device, Structs.DEVICE, "max_qp_wr");
      maxCompletions = Structs.longOf(device, Structs.DEVICE, "max_cqe");
      MemorySegment attributes = arena.allocate(Structs.PORT);
      NativeCall.check(
          Verbs.queryPort(context, port, attributes.address()), "asking for " + where());
      if (Structs.intOf(attributes, Structs.PORT, "state") != ACTIVE) {
        throw new UnavailableException(
            where() + " is not active",
            Failure.remedy("look at cables and at the state shown by ibv_devinfo"));
      }
      messageBytes =
          Math.min(
              MESSAGE_BYTES,
              Integer.toUnsignedLong(Structs.intOf(attributes, Structs.PORT, "max_message")));
      pkeyIndex = pkeyIndex(Structs.intOf(attributes, Structs.PORT, "pkeys"));
      boolean ethernet = Structs.intOf(attributes, Structs.PORT, "ethernet") != 0;
      int lid = Structs.intOf(attributes, Structs.PORT, "lid");
      boolean global =
          ethernet
              || lid == 0
              || options.gidIndex() >= 0
              || Structs.intOf(attributes, Structs.PORT, "grh_required") != 0;
      Gid gid = gid(sysfs, ethernet);
      gidIndex = gid.index();
      int mtu = 128 << Structs.intOf(attributes, Structs.PORT, "active_mtu");
      address =
          new RdmaAddress(
              where(),
              ethernet,
              global,
              lid,
              options.mtu() == 0 ? mtu : Math.min(mtu, options.mtu()),
              HexFormat.of().formatHex(gid.bytes().orElseThrow()));
      made =
          NativeCall.check(Verbs.allocProtectionDomain(context), "a protection domain of " + name);
    } finally {
      if (made == 0) {
        Verbs.close(context);
        arena.close();
      }
    }
    this.domain = made;
  }

  /** Opens the adapter that a rank uses. */
  static Adapter open(Sysfs sysfs, RdmaOptions options, int rank) {
    return new Adapter(sysfs, choose(sysfs.adapters(), options, rank), options);
  }

  /** The adapter for a rank: of those named, else of those with an active port, by turns. */
  static Sysfs.AdapterFacts choose(
      List<Sysfs.AdapterFacts> adapters, RdmaOptions options, int rank) {
    if (options.devices().isEmpty()) {
      List<Sysfs.AdapterFacts> active =
          adapters.stream().filter(adapter -> adapter.activePort().isPresent()).toList();
      if (active.isEmpty()) {
        throw new UnavailableException(
            "no RDMA adapter has an active port: " + adapters,
            Failure.remedy("look at cables and at the state shown by ibv_devinfo").withRank(rank));
      }
      return active.get(rank % active.size());
    }
    String wanted = options.devices().get(rank % options.devices().size());
    return adapters.stream()
        .filter(adapter -> adapter.name().equals(wanted))
        .findFirst()
        .orElseThrow(() ->
            new UsageException(
                "option %s names %s, which is not there; there are %s"
                    .formatted(RdmaOptions.DEVICE, wanted, adapters),
                Failure.UNKNOWN.withRank(rank)));
  }

  private static int port(Sysfs.AdapterFacts facts, RdmaOptions options) {
    if (options.port() == 0) {
      return facts
          .activePort()
          .orElseThrow(() ->
              new UnavailableException(
                  "no port is active: " + facts,
                  Failure.remedy("look at cables and at the state shown by ibv_devinfo")))
          .number();
    }
    if (facts.ports().stream().noneMatch(p -> p.number() == options.port())) {
      throw new UsageException(
          "option %s is %d; there is %s".formatted(RdmaOptions.PORT, options.port(), facts));
    }
    return options.port();
  }

  private int pkeyIndex(int count) {
    List<String> found = new ArrayList<>();
    for (int index = 0; index < count; index++) {
      long key = Verbs.queryPkey(context, port, index);
      if (key >= 0 && (key & PKEY_MASK) == options.pkey()) {
        return index;
      }
      if (key > 0) {
        found.add("0x%04x".formatted(key));
      }
    }
    throw new UnavailableException(
        "%s is not in partition 0x%04x; it is in %s".formatted(where(), options.pkey(), found),
        Failure.remedy(
            "set %s to one of these, or ask for membership".formatted(RdmaOptions.PKEY)));
  }

  private Gid gid(Sysfs sysfs, boolean ethernet) {
    List<Gid> table = sysfs.gids(name, port);
    int index = ethernet ? options.gidIndex() : Math.max(0, options.gidIndex());
    return GidChoice.choose(where(), table, index, RdmaOptions.GID_INDEX);
  }

  private String where() {
    return "port %d of adapter %s".formatted(port, name);
  }

  RdmaOptions options() {
    return options;
  }

  long context() {
    return context;
  }

  long domain() {
    return domain;
  }

  /** What peers need to reach it. */
  RdmaAddress address() {
    return address;
  }

  /** How many bytes one work request moves at most. */
  long messageBytes() {
    return messageBytes;
  }

  /**
   * How many work requests each of some queue pairs can have in flight, so that the queue of their
   * completions never overruns.
   */
  int depth(int pairs) {
    long depth = Math.min(options.depth(), Math.min(maxQueue, maxCompletions / Math.max(1, pairs)));
    if (depth < 4) {
      throw new UnavailableException(
          "adapter %s takes %d completions, too few for %d queue pairs"
              .formatted(name, maxCompletions, pairs),
          Failure.remedy("spread ranks over more adapters: " + RdmaOptions.DEVICE));
    }
    return (int) depth;
  }

  /** Puts what is this end's into the description of a connection. */
  void describe(MemorySegment connection) {
    Structs.put(connection, Structs.CONNECTION, "port", port);
    Structs.put(connection, Structs.CONNECTION, "pkey_index", pkeyIndex);
    Structs.put(connection, Structs.CONNECTION, "gid_index", gidIndex);
    Structs.put(connection, Structs.CONNECTION, "traffic_class", options.trafficClass());
    Structs.put(connection, Structs.CONNECTION, "service_level", options.serviceLevel());
    Structs.put(connection, Structs.CONNECTION, "timeout", options.timeout());
    Structs.put(connection, Structs.CONNECTION, "retries", options.retries());
  }

  /** Takes what the adapter tells. Any thread may call; does not block. */
  synchronized void readEvents() {
    for (int i = 0; i < MAX_EVENTS && Verbs.event(context, event.address()) == 1; i++) {
      int type = Structs.intOf(event, Structs.EVENT, "type");
      int element = Structs.intOf(event, Structs.EVENT, "element");
      String text = "%s: %s".formatted(name, DeviceEvent.meaningOf(type));
      switch (DeviceEvent.effectOf(type)) {
        case NONE -> LOG.debug("{}", text);
        case NOTED -> {
          LOG.warn("{}", text);
          noted = text;
        }
        case QUEUE_PAIR -> add(new Fatal(element, text, type));
        case ADAPTER -> add(new Fatal(-1, text, type));
      }
    }
  }

  private void add(Fatal next) {
    LOG.error("{}", next.text());
    List<Fatal> all = new ArrayList<>(fatal);
    all.add(next);
    fatal = List.copyOf(all);
  }

  /** Events that ended something, the oldest first. */
  List<Fatal> fatalEvents() {
    return fatal;
  }

  /** The last event that ended nothing, or an empty text: it may explain a later failure. */
  String notedEvent() {
    return noted;
  }

  @Override
  public void close() {
    NativeCall.check(Verbs.freeProtectionDomain(domain), "freeing a protection domain of " + name);
    NativeCall.check(Verbs.close(context), "closing adapter " + name);
    arena.close();
  }
}
