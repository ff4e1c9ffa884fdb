package org.mkernel.runtime;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ThreadFactory;
import org.jspecify.annotations.Nullable;
import org.mkernel.api.Collective;
import org.mkernel.api.DType;
import org.mkernel.api.Failure;
import org.mkernel.api.MKernelException;
import org.mkernel.api.Operation;
import org.mkernel.api.Rank;
import org.mkernel.api.Stopwatch;
import org.mkernel.api.Tensor;
import org.mkernel.api.UsageException;
import org.mkernel.api.schedule.Topology;
import org.mkernel.api.spi.Device;
import org.mkernel.api.spi.DeviceProvider;
import org.mkernel.api.spi.Exchange;
import org.mkernel.api.spi.MappedPort;
import org.mkernel.api.spi.Port;
import org.mkernel.api.spi.TransportProvider;
import org.mkernel.api.spi.Wire;

/** A rank of a {@link LocalWorld}. */
final class LocalRank implements Rank {
  private static final long TENSOR_ALIGNMENT = 256;

  private final LocalWorld world;
  private final int index;
  private final Device device;
  private final Exchange exchange;
  private final ThreadFactory threads;
  private final Set<DeviceTensor> tensors = new LinkedHashSet<>();
  private final List<PreparedOperation> operations = new ArrayList<>();
  private @Nullable MappedPort mapped;
  private @Nullable Wire wire;
  private int prepared;
  private long launches;

  LocalRank(LocalWorld world, int index, DeviceProvider device, ThreadFactory threads) {
    this.world = world;
    this.index = index;
    this.threads = threads;
    this.exchange = world.group().exchange(index);
    this.device = device.open(place(), threads);
  }

  /** Its number on its host, which decides on its device: the same in each part of a world. */
  private int place() {
    return world
        .rankOfWhole(index)
        .map(LocalRank::place)
        .orElse(world.topology().localIndex(index));
  }

  /** Whether a tensor is this rank's, here or in the world that this one is a part of. */
  boolean owns(DeviceTensor tensor) {
    return tensor.owner() == this
        || world.rankOfWhole(index).filter(rank -> rank.owns(tensor)).isPresent();
  }

  void openPorts(Optional<Selection.Transport> intra, Optional<Selection.Transport> inter) {
    intra.ifPresent(t -> mapped = (MappedPort) open(t.provider()));
    inter.ifPresent(t -> wire = (Wire) open(t.provider()));
  }

  private Port open(TransportProvider provider) {
    return provider.open(
        new TransportProvider.Context(
            index, world.topology(), exchange, world.transportOptions(), threads));
  }

  LocalWorld world() {
    return world;
  }

  Device device() {
    return device;
  }

  @Override
  public Exchange exchange() {
    return exchange;
  }

  /** Memory that all ranks of the node can map. */
  Device.Memory allocateMemory(long bytes, long alignment) {
    return world.sharesMemory(index)
        ? device.allocateShared(bytes, alignment)
        : device.allocate(bytes, alignment);
  }

  MappedPort mapped() {
    if (mapped == null) {
      throw new IllegalStateException("rank " + index + " has no mapped port");
    }
    return mapped;
  }

  Wire wire() {
    if (wire == null) {
      throw new IllegalStateException("rank " + index + " has no wire");
    }
    return wire;
  }

  /** The number of the next operation; equal on all ranks, since prepare is collective. */
  int nextOperation() {
    return LocalWorld.checkedOperation(prepared++);
  }

  /** Counts a launch and compares its order with other ranks'. */
  int recordLaunch(int operation) {
    return world.ledger().record(++launches, operation);
  }

  @Override
  public int index() {
    return index;
  }

  @Override
  public int size() {
    return world.size();
  }

  @Override
  public Topology topology() {
    return world.topology();
  }

  @Override
  public Tensor allocate(DType dtype, long rows, long columns) {
    world.throwIfDead();
    long bytes = DeviceTensor.checkedBytes(index, dtype, rows, columns);
    Device.Memory memory = allocateMemory(bytes, TENSOR_ALIGNMENT);
    return remember(new DeviceTensor(this, dtype, rows, columns, memory.address(), memory));
  }

  @Override
  public Tensor borrow(long address, DType dtype, long rows, long columns, long pitch) {
    world.throwIfDead();
    long bytes = DeviceTensor.checkedBytes(index, dtype, rows, columns);
    Failure here = Failure.UNKNOWN.withRank(index);
    if (bytes > 0 && (address == 0 || address % dtype.bytes() != 0)) {
      throw new UsageException(
          "a tensor at address 0x%x; it must not be null and a multiple of %d bytes"
              .formatted(address, dtype.bytes()),
          here);
    }
    if (rows > 1 && pitch != columns * dtype.bytes()) {
      throw new UsageException(
          "a tensor with a pitch of %d bytes; this version needs contiguous rows: %d bytes"
              .formatted(pitch, columns * dtype.bytes()),
          here);
    }
    return remember(new DeviceTensor(this, dtype, rows, columns, address, null));
  }

  @Override
  public Optional<Stopwatch> stopwatch() {
    world.throwIfDead();
    return device.stopwatch();
  }

  private DeviceTensor remember(DeviceTensor tensor) {
    synchronized (tensors) {
      tensors.add(tensor);
    }
    return tensor;
  }

  void forget(DeviceTensor tensor) {
    synchronized (tensors) {
      tensors.remove(tensor);
    }
  }

  @Override
  public Operation prepare(Collective collective) {
    world.throwIfDead();
    PreparedOperation operation = new Preparation(this, collective).run();
    synchronized (operations) {
      operations.add(operation);
    }
    return operation;
  }

  void forget(PreparedOperation operation) {
    synchronized (operations) {
      operations.remove(operation);
    }
  }

  private List<PreparedOperation> openOperations() {
    synchronized (operations) {
      return List.copyOf(operations);
    }
  }

  boolean inFlight() {
    return openOperations().stream().anyMatch(PreparedOperation::inFlight);
  }

  void stopOperations() {
    openOperations().forEach(PreparedOperation::stop);
  }

  @Override
  public Optional<MKernelException> failure() {
    return world.failure();
  }

  /** Frees ports, tensors and the device. Operations were stopped before. */
  void close() {
    if (wire != null) {
      wire.close();
    }
    if (mapped != null) {
      mapped.close();
    }
    List<DeviceTensor> open;
    synchronized (tensors) {
      open = List.copyOf(tensors);
      tensors.clear();
    }
    open.forEach(DeviceTensor::closeWithWorld);
    device.close();
  }
}
