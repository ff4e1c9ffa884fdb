package org.mkernel.runtime;

import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.mkernel.api.ClosedException;
import org.mkernel.api.DType;
import org.mkernel.api.Failure;
import org.mkernel.api.Tensor;
import org.mkernel.api.UsageException;
import org.mkernel.api.spi.Device;

/** A tensor of one rank, on memory of the rank or of the caller. */
final class DeviceTensor implements Tensor {
  private static final int CLOSED = -1;

  private final LocalRank owner;
  private final DType dtype;
  private final long rows;
  private final long columns;
  private final long address;
  private final Device.@Nullable Memory memory;

  /** How many operations are bound to it, or {@link #CLOSED}. */
  private final AtomicInteger bindings = new AtomicInteger();

  DeviceTensor(
      LocalRank owner,
      DType dtype,
      long rows,
      long columns,
      long address,
      Device.@Nullable Memory memory) {
    this.owner = owner;
    this.dtype = dtype;
    this.rows = rows;
    this.columns = columns;
    this.address = address;
    this.memory = memory;
  }

  static long checkedBytes(int rank, DType dtype, long rows, long columns) {
    if (rows < 0 || columns < 0) {
      throw new UsageException(
          "a tensor of %d x %d; rows and columns must be at least 0".formatted(rows, columns),
          Failure.UNKNOWN.withRank(rank));
    }
    try {
      return Math.multiplyExact(Math.multiplyExact(rows, columns), dtype.bytes());
    } catch (ArithmeticException e) {
      throw new UsageException(
          "a tensor of %d x %d %s has more than 2^63 bytes".formatted(rows, columns, dtype.label()),
          Failure.UNKNOWN.withRank(rank),
          e);
    }
  }

  LocalRank owner() {
    return owner;
  }

  void bind() {
    int count = bindings.getAndUpdate(b -> b == CLOSED ? CLOSED : b + 1);
    if (count == CLOSED) {
      throw closed();
    }
  }

  void unbind() {
    bindings.decrementAndGet();
  }

  @Override
  public DType dtype() {
    return dtype;
  }

  @Override
  public long rows() {
    return rows;
  }

  @Override
  public long columns() {
    return columns;
  }

  @Override
  public long pitch() {
    return columns * dtype.bytes();
  }

  @Override
  public long address() {
    if (bindings.get() == CLOSED) {
      throw closed();
    }
    return address;
  }

  @Override
  public void read(long offset, MemorySegment to) {
    owner.device().read(checked(offset, to.byteSize()), to);
  }

  @Override
  public void write(long offset, MemorySegment from) {
    owner.device().write(from, checked(offset, from.byteSize()));
  }

  private long checked(long offset, long count) {
    long bytes = rows * pitch();
    if (offset < 0 || count > bytes - offset) {
      throw new UsageException(
          "%d bytes from byte %d of a tensor of rank %d (%s, %d x %d), which has %d bytes"
              .formatted(count, offset, owner.index(), dtype.label(), rows, columns, bytes),
          Failure.UNKNOWN.withRank(owner.index()));
    }
    return address() + offset;
  }

  private ClosedException closed() {
    return new ClosedException(
        "this tensor of rank %d (%s, %d x %d) was closed"
            .formatted(owner.index(), dtype.label(), rows, columns),
        Failure.UNKNOWN.withRank(owner.index()));
  }

  @Override
  public void close() {
    int count = bindings.compareAndExchange(0, CLOSED);
    if (count > 0) {
      throw new UsageException(
          "this tensor of rank %d (%s, %d x %d) is bound to %d operations; close those first"
              .formatted(owner.index(), dtype.label(), rows, columns, count),
          Failure.UNKNOWN.withRank(owner.index()));
    }
    if (count == 0) {
      owner.forget(this);
      if (memory != null) {
        memory.close();
      }
    }
  }

  /** Closes it with its world, bound or not. */
  void closeWithWorld() {
    if (bindings.getAndSet(CLOSED) != CLOSED && memory != null) {
      memory.close();
    }
  }
}
