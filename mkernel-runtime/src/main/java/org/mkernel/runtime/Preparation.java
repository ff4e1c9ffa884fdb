package org.mkernel.runtime;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.TreeMap;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.mkernel.api.Collective;
import org.mkernel.api.Failure;
import org.mkernel.api.MKernelException;
import org.mkernel.api.MismatchException;
import org.mkernel.api.OperationReport;
import org.mkernel.api.Tensor;
import org.mkernel.api.UnavailableException;
import org.mkernel.api.UsageException;
import org.mkernel.api.schedule.BufferSpec;
import org.mkernel.api.schedule.Kernel;
import org.mkernel.api.schedule.RankSchedule;
import org.mkernel.api.schedule.Role;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.schedule.TaskKind;
import org.mkernel.api.schedule.Topology;
import org.mkernel.api.spi.CollectiveProvider;
import org.mkernel.api.spi.CollectiveProvider.Request;
import org.mkernel.api.spi.CollectiveProvider.Shape;
import org.mkernel.api.spi.Device;
import org.mkernel.api.spi.Executable;
import org.mkernel.api.spi.KernelSet;
import org.mkernel.api.spi.OperandSpec;
import org.mkernel.api.spi.OptionSpec;
import org.mkernel.api.spi.Problem;
import org.mkernel.api.spi.Span;
import org.mkernel.api.spi.Transfer;
import org.mkernel.api.spi.TransportProvider;
import org.mkernel.api.spi.Wire;

/**
 * Prepares an operation on one rank: agrees with the others, plans and checks, binds memory,
 * connects, and hands the bound schedule to the device. Everything that can block or allocate
 * happens here.
 */
final class Preparation {
  /** Alignment of each buffer in a workspace: what the strictest executor asks for. */
  private static final long ALIGNMENT = 256;

  private static final Logger LOG = LogManager.getLogger(Preparation.class);
  private static final int MAX_FIFO = 1 << 16;
  private static final int MIN_FIFO = 64;

  private final LocalRank rank;
  private final LocalWorld world;
  private final Topology topology;
  private final Collective collective;
  private final int number;
  private final OperationGroup group;
  private final List<DeviceTensor> bound = new ArrayList<>();

  Preparation(LocalRank rank, Collective collective) {
    this.rank = rank;
    this.world = rank.world();
    this.topology = world.topology();
    this.collective = collective;
    this.number = rank.nextOperation();
    this.group = world.operation(number);
  }

  PreparedOperation run() {
    List<Request> requests = agreeOnOperator();
    CollectiveProvider provider = world.plugins().collective(collective.operator());
    Problem problem = provider.problem(topology, requests);
    PlannedSchedule planned = world.planned(problem);
    requireKernels(planned.schedule());
    boolean done = false;
    try {
      PreparedOperation operation = bind(planned);
      rank.exchange().allGather(new byte[0]);
      done = true;
      LOG.info("rank {} prepared {}", rank.index(), operation.report());
      return operation;
    } catch (MKernelException e) {
      // The others wait for this rank: they must not wait out their deadline.
      world.abort(e);
      throw e;
    } finally {
      if (!done) {
        bound.forEach(DeviceTensor::unbind);
      }
    }
  }

  private List<Request> agreeOnOperator() {
    RuntimeException own = null;
    Request request = new Request(Map.of(), collective.options());
    try {
      Map<String, Shape> shapes = new HashMap<>();
      collective.operands().forEach((name, t) -> shapes.put(name, shapeOf(name, t)));
      request = new Request(shapes, tunedOptions());
    } catch (MKernelException e) {
      own = e;
    }
    String problem = own == null ? "" : String.valueOf(own.getMessage());
    List<RequestCodec.Message> messages =
        rank
            .exchange()
            .allGather(
                RequestCodec.encode(
                    new RequestCodec.Message(collective.operator(), request, problem)))
            .stream()
            .map(RequestCodec::decode)
            .toList();
    if (own != null) {
      throw own;
    }
    for (int peer = 0; peer < messages.size(); peer++) {
      RequestCodec.Message message = messages.get(peer);
      if (!message.problem().isEmpty()) {
        throw new UsageException(
            "rank %d can't prepare %s: %s".formatted(peer, message.operator(), message.problem()),
            here().withPeer(peer));
      }
      if (!message.operator().equals(collective.operator())) {
        throw new MismatchException(
            "rank %d prepares %s while rank %d prepares %s"
                .formatted(rank.index(), collective.operator(), peer, message.operator()),
            here().withPeer(peer));
      }
    }
    return messages.stream().map(RequestCodec.Message::request).toList();
  }

  /** What the caller asked for, and what the device prefers where he did not. */
  private Map<String, String> tunedOptions() {
    Map<String, String> options = new HashMap<>(collective.options());
    Map<String, String> preferred = rank.device().tuning();
    for (OptionSpec option : world.plugins().collective(collective.operator()).options()) {
      String value = preferred.get(option.name());
      if (value != null) {
        options.putIfAbsent(option.name(), value);
      }
    }
    return options;
  }

  private Shape shapeOf(String name, Tensor tensor) {
    if (!(tensor instanceof DeviceTensor own) || !rank.owns(own)) {
      throw new UsageException(
          "operand %s is no tensor of rank %d; allocate or borrow it there"
              .formatted(name, rank.index()),
          here());
    }
    own.address();
    return new Shape(tensor.dtype(), tensor.rows(), tensor.columns());
  }

  private Failure here() {
    return Failure.UNKNOWN.withRank(rank.index()).withOperation(collective.operator());
  }

  private List<KernelSet> kernelSets() {
    return world.plugins().kernelSets().stream()
        .filter(set -> set.device().equals(rank.device().kind()))
        .toList();
  }

  private void requireKernels(Schedule schedule) {
    for (Kernel kernel : schedule.kernels()) {
      if (kernelSets().stream().noneMatch(set -> set.supports(kernel.kind()))) {
        throw new UnavailableException(
            "no kernel set for device %s has %s".formatted(rank.device().kind(), kernel.kind()),
            Failure.remedy("put a module that provides one on the module path or class path")
                .withOperation(schedule.name()));
      }
    }
  }

  /** Where each buffer lies: the span that holds it, and where in that span slot 0 starts. */
  private static final class Layout {
    final int[] span;
    final long[] offset;
    final long[] slot;
    final long arenaBytes;

    Layout(Schedule schedule) {
      int count = schedule.buffers().size();
      span = new int[count];
      offset = new long[count];
      slot = new long[count];
      long end = align(8L * schedule.signalCount());
      int spans = 1;
      for (BufferSpec buffer : schedule.buffers()) {
        int b = buffer.index();
        switch (buffer.use()) {
          case WORKSPACE -> {
            slot[b] = align(buffer.bytes(0));
            offset[b] = end;
            end = Math.addExact(end, Math.multiplyExact(slot[b], buffer.depth()));
          }
          case OUTPUT -> span[b] = spans++;
          case INPUT -> span[b] = -1;
        }
      }
      arenaBytes = end;
    }

    private static long align(long bytes) {
      return Math.addExact(bytes, ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
  }

  private PreparedOperation bind(PlannedSchedule planned) {
    Schedule schedule = planned.schedule();
    Device device = rank.device();
    Layout layout = new Layout(schedule);
    Device.Memory arena = rank.allocateMemory(layout.arenaBytes, ALIGNMENT);
    group.own(arena::close);

    int size = topology.size();
    long[][] buffers = new long[size][schedule.buffers().size()];
    long[] signals = new long[size];
    List<Span> spans = new ArrayList<>();
    spans.add(new Span(arena.address(), arena.bytes()));
    signals[rank.index()] = arena.address();
    for (BufferSpec buffer : schedule.buffers()) {
      int b = buffer.index();
      long address = arena.address() + layout.offset[b];
      if (buffer.use() != BufferSpec.Use.WORKSPACE) {
        address = operand(buffer).address();
        if (buffer.use() == BufferSpec.Use.OUTPUT) {
          spans.add(new Span(address, buffer.bytes(rank.index())));
        }
      }
      buffers[rank.index()][b] = address;
    }
    requireApart(planned, buffers[rank.index()]);
    exchangeMemory(schedule, layout, spans, buffers, signals);

    int[] transferOf = new int[schedule.rank(rank.index()).tasks()];
    Arrays.fill(transferOf, -1);
    WiredQueue wired =
        world.inter().isPresent()
            ? connect(schedule, layout, spans, buffers, transferOf)
            : WiredQueue.NONE;
    int[] lanes = lanes(schedule.rank(rank.index()));
    OperationReport report = report(planned, lanes);
    PreparedOperation operation =
        new PreparedOperation(rank, number, group, planned, report, wired, bound);
    Executable executable =
        device.prepare(
            new BoundPlan(
                schedule,
                rank.index(),
                buffers,
                layout.slot,
                signals,
                lanes,
                transferOf,
                wired,
                kernelSets(),
                world.waitNanos(),
                world.abort(),
                operation));
    operation.start(executable);
    group.add(rank.index(), operation);
    return operation;
  }

  private DeviceTensor operand(BufferSpec buffer) {
    Tensor tensor = collective.operands().get(buffer.name());
    if (tensor == null) {
      throw new UsageException(
          "%s needs the operand %s; given are %s"
              .formatted(
                  collective.operator(),
                  buffer.name(),
                  new TreeMap<>(collective.operands()).keySet()),
          here());
    }
    DeviceTensor own = (DeviceTensor) tensor;
    long bytes = own.rows() * own.pitch();
    if (own.dtype() != buffer.dtype() || bytes != buffer.bytes(rank.index())) {
      throw new UsageException(
          "operand %s of rank %d is %s %d x %d, %d bytes; %s needs %s and %d bytes"
              .formatted(
                  buffer.name(),
                  rank.index(),
                  own.dtype().label(),
                  own.rows(),
                  own.columns(),
                  bytes,
                  collective.operator(),
                  buffer.dtype().label(),
                  buffer.bytes(rank.index())),
          here());
    }
    own.bind();
    bound.add(own);
    return own;
  }

  /** Outputs share memory with no other operand, unless the operator says that it may be so. */
  private void requireApart(PlannedSchedule planned, long[] addresses) {
    List<BufferSpec> operands =
        planned.schedule().buffers().stream()
            .filter(b -> b.use() != BufferSpec.Use.WORKSPACE && b.bytes(rank.index()) > 0)
            .toList();
    for (BufferSpec output : operands) {
      for (BufferSpec other : operands) {
        long distance = addresses[other.index()] - addresses[output.index()];
        boolean apart =
            distance >= output.bytes(rank.index()) || -distance >= other.bytes(rank.index());
        if (output.use() == BufferSpec.Use.OUTPUT
            && other.index() != output.index()
            && !apart
            && !isInPlace(planned, other.name(), output.name(), distance)) {
          throw new UsageException(
              "operands %s and %s of rank %d share memory, %s starts %d bytes from %s: %s"
                  .formatted(
                      other.name(),
                      output.name(),
                      rank.index(),
                      other.name(),
                      distance,
                      output.name(),
                      inPlace(planned).isPresent()
                          ? "in place it is %d bytes".formatted(inPlace(planned).getAsLong())
                          : collective.operator() + " is not done in place"),
              Failure.remedy("use tensors that do not overlap")
                  .withRank(rank.index())
                  .withOperation(collective.operator()));
        }
      }
    }
  }

  private OptionalLong inPlace(PlannedSchedule planned) {
    return world
        .plugins()
        .collective(collective.operator())
        .inPlace(planned.problem(), rank.index());
  }

  private boolean isInPlace(PlannedSchedule planned, String input, String output, long distance) {
    List<OperandSpec> operands = planned.operands();
    OptionalLong allowed = inPlace(planned);
    return operands.getFirst().name().equals(input)
        && operands.getLast().name().equals(output)
        && allowed.isPresent()
        && allowed.getAsLong() == distance;
  }

  /** Compares digests, and learns where peers of this node have their memory. */
  private void exchangeMemory(
      Schedule schedule, Layout layout, List<Span> spans, long[][] buffers, long[] signals) {
    boolean shared = world.intra().isPresent();
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (DataOutputStream out = new DataOutputStream(bytes)) {
      out.writeUTF(schedule.digest());
      for (Span span : spans) {
        byte[] handle =
            shared && span.bytes() > 0
                ? rank.mapped().export(span.address(), span.bytes())
                : new byte[0];
        out.writeInt(handle.length);
        out.write(handle);
      }
    } catch (IOException e) {
      throw new UncheckedIOException("memory can't be written to", e);
    }
    List<byte[]> all = rank.exchange().allGather(bytes.toByteArray());
    for (int peer = 0; peer < all.size(); peer++) {
      try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(all.get(peer)))) {
        String digest = in.readUTF();
        if (!digest.equals(schedule.digest())) {
          throw new MismatchException(
              "rank %d has the schedule %s, rank %d has %s"
                  .formatted(rank.index(), schedule.digest(), peer, digest),
              here().withPeer(peer));
        }
        if (peer == rank.index() || !topology.sameNode(peer, rank.index())) {
          continue;
        }
        long[] bases = new long[spans.size()];
        for (int span = 0; span < bases.length; span++) {
          byte[] handle = in.readNBytes(in.readInt());
          bases[span] = handle.length == 0 ? 0 : map(peer, handle);
        }
        signals[peer] = bases[0];
        for (int b = 0; b < layout.span.length; b++) {
          if (layout.span[b] >= 0 && bases[layout.span[b]] != 0) {
            buffers[peer][b] = bases[layout.span[b]] + layout.offset[b];
          }
        }
      } catch (IOException e) {
        throw new UncheckedIOException("rank " + peer + " sent a message that can't be read", e);
      }
    }
  }

  private long map(int peer, byte[] handle) {
    long address = rank.mapped().map(peer, handle);
    group.own(() -> rank.mapped().unmap(address));
    return address;
  }

  private WiredQueue connect(
      Schedule schedule, Layout layout, List<Span> spans, long[][] buffers, int[] transferOf) {
    requireReach();
    RankSchedule tasks = schedule.rank(rank.index());
    int variants =
        schedule.buffers().stream().mapToInt(BufferSpec::depth).reduce(1, Preparation::lcm);
    List<Transfer> transfers = new ArrayList<>();
    List<Integer> peers = new ArrayList<>();
    List<Long> done = new ArrayList<>();
    for (int task = 0; task < tasks.tasks(); task++) {
      TaskKind kind = tasks.kind(task);
      int raise = tasks.firstRaise(task);
      boolean puts = kind == TaskKind.PUT;
      if ((!puts && kind != TaskKind.NOTIFY)
          || raise == tasks.firstRaise(task + 1)
          || topology.sameNode(tasks.raiseRank(raise), rank.index())) {
        continue;
      }
      transferOf[task] = peers.size();
      int peer = tasks.raiseRank(raise);
      peers.add(peer);
      done.add(doneAddress(tasks, task, spans));
      for (int v = 0; v < variants; v++) {
        transfers.add(transfer(schedule, layout, buffers, tasks, task, puts, peer, v));
      }
    }
    Wire.Channel channel = rank.wire().open(schedule.name(), spans, transfers);
    group.own(channel::close);
    int capacity = Integer.highestOneBit(Math.clamp(4L * peers.size(), MIN_FIFO, MAX_FIFO));
    // The proxy reads commands while the device writes them.
    Device.Pinned memory = rank.device().pinned(CommandFifo.bytes(capacity), ALIGNMENT);
    group.own(memory::close);
    CommandFifo fifo =
        new CommandFifo(RawMemory.segment(memory.hostAddress(), memory.bytes()), capacity);
    int[] taskOf = new int[peers.size()];
    for (int task = 0; task < transferOf.length; task++) {
      if (transferOf[task] >= 0) {
        taskOf[transferOf[task]] = task;
      }
    }
    ProxyQueue queue =
        new ProxyQueue(
            rank.index(),
            schedule.name(),
            fifo,
            channel,
            variants,
            peers.stream().mapToInt(Integer::intValue).toArray(),
            done.stream().mapToLong(Long::longValue).toArray(),
            transfer -> schedule.describe(rank.index(), taskOf[transfer]));
    if (world.trace().isOn()) {
      queue.observe((transfer, epoch, taken, posted, completed) ->
          world
              .trace()
              .addTransfer(
                  schedule, rank.index(), taskOf[transfer], epoch, taken, posted, completed));
    }
    if (!rank.device().hostAccessible()) {
      Device.CopyQueue copies = rank.device().copyQueue();
      group.own(copies::close);
      queue.raiseBy(copies::store);
    }
    return WiredQueue.of(world.proxy(), queue, fifo, memory.address(), peers);
  }

  /** A wire that follows addresses of a device as if they were its own would end the process. */
  private void requireReach() {
    TransportProvider wire = world.inter().orElseThrow().provider();
    if (!rank.device().hostAccessible() && !wire.reachesDevices()) {
      throw new UnavailableException(
          "the transport %s moves memory of the host only, and not that of the device %s"
              .formatted(wire.name(), rank.device().kind()),
          Failure.remedy("use one node, the device host, or a transport that reaches devices")
              .withRank(rank.index())
              .withOperation(collective.operator()));
    }
  }

  private static Long doneAddress(RankSchedule tasks, int task, List<Span> spans) {
    int second = tasks.firstRaise(task) + 1;
    return second < tasks.firstRaise(task + 1)
        ? spans.getFirst().address() + 8L * tasks.raiseSignal(second)
        : 0L;
  }

  private Transfer transfer(
      Schedule schedule,
      Layout layout,
      long[][] buffers,
      RankSchedule tasks,
      int task,
      boolean puts,
      int peer,
      int variant) {
    long flag = 8L * tasks.raiseSignal(tasks.firstRaise(task));
    if (!puts) {
      return new Transfer(peer, 0, 0, 0, 0, 0, 0, 0, flag);
    }
    int source = tasks.partRegion(tasks.firstPart(tasks.firstStream(task)));
    int target = tasks.output(tasks.firstOutput(task));
    int from = tasks.regionBuffer(source);
    int to = tasks.regionBuffer(target);
    return new Transfer(
        peer,
        buffers[rank.index()][from]
            + variant % schedule.buffers().get(from).depth() * layout.slot[from]
            + tasks.regionOffset(source),
        tasks.regionPitch(source),
        layout.span[to],
        layout.offset[to]
            + variant % schedule.buffers().get(to).depth() * layout.slot[to]
            + tasks.regionOffset(target),
        tasks.regionPitch(target),
        tasks.regionRows(source),
        tasks.regionRowBytes(source),
        flag);
  }

  private static int lcm(int a, int b) {
    int x = a;
    int y = b;
    while (y != 0) {
      int rest = x % y;
      x = y;
      y = rest;
    }
    return Math.multiplyExact(a / x, b);
  }

  private int[] lanes(RankSchedule schedule) {
    int[] lanes = new int[schedule.roles().size()];
    for (int role = 0; role < lanes.length; role++) {
      String name = "lanes." + schedule.roles().get(role).name();
      String asked = world.config().option(name).orElse("");
      if (asked.isEmpty()) {
        lanes[role] = rank.device().defaultLanes(schedule, role);
      } else {
        lanes[role] = parseLanes(name, asked);
      }
    }
    return lanes;
  }

  private static int parseLanes(String name, String text) {
    try {
      int lanes = Integer.parseInt(text);
      if (lanes >= 1 && lanes <= 1024) {
        return lanes;
      }
    } catch (NumberFormatException e) {
      // Reported below, with the text.
    }
    throw new UsageException(
        "option %s is \"%s\"; a whole number from 1 to 1024 is needed".formatted(name, text));
  }

  private OperationReport report(PlannedSchedule planned, int[] lanes) {
    List<Role> roles = planned.schedule().rank(rank.index()).roles();
    List<String> words = new ArrayList<>();
    for (int role = 0; role < lanes.length; role++) {
      words.add(roles.get(role).name() + "=" + lanes[role]);
    }
    return new OperationReport(
        planned.problem().operator(),
        rank.device().kind(),
        world.intra().map(Selection.Transport::report),
        world.inter().map(Selection.Transport::report),
        planned.schedule().digest(),
        planned.schedule().tasks(),
        words,
        planned.report().intraBytes(),
        planned.report().interBytes(),
        planned.planNanos(),
        planned.checkNanos(),
        planned.report().assumptions());
  }
}
