package org.mkernel.runtime;

import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.mkernel.api.ClosedException;
import org.mkernel.api.DeadlineExceededException;
import org.mkernel.api.DeviceException;
import org.mkernel.api.Failure;
import org.mkernel.api.MKernelException;
import org.mkernel.api.MismatchException;
import org.mkernel.api.Operation;
import org.mkernel.api.OperationReport;
import org.mkernel.api.PeerLostException;
import org.mkernel.api.UsageException;
import org.mkernel.api.spi.Executable;
import org.mkernel.api.spi.ExecutionPlan;

/** An operation of one rank, ready to launch. */
final class PreparedOperation implements Operation, ExecutionPlan.Observer {
  /** The rank that waits for lost bytes knows best who is to blame: it speaks first. */
  private static final long GRACE_NANOS = TimeUnit.MILLISECONDS.toNanos(500);

  private static final long POLL_NANOS = TimeUnit.MICROSECONDS.toNanos(50);

  private final LocalRank rank;
  private final LocalWorld world;
  private final int number;
  private final OperationGroup group;
  private final PlannedSchedule planned;
  private final OperationReport report;
  private final WiredQueue wired;
  private final List<DeviceTensor> bound;
  private final AtomicBoolean stopped = new AtomicBoolean();
  private final AtomicBoolean blaming = new AtomicBoolean();
  private @Nullable Executable executable;
  private volatile long launched;
  private volatile boolean closed;

  PreparedOperation(
      LocalRank rank,
      int number,
      OperationGroup group,
      PlannedSchedule planned,
      OperationReport report,
      WiredQueue wired,
      List<DeviceTensor> bound) {
    this.rank = rank;
    this.world = rank.world();
    this.number = number;
    this.group = group;
    this.planned = planned;
    this.report = report;
    this.wired = wired;
    this.bound = bound;
  }

  /** Makes it ready to launch. */
  void start(Executable prepared) {
    executable = prepared;
    wired.start();
  }

  private Executable executable() {
    if (executable == null) {
      throw new IllegalStateException("launched before it was prepared");
    }
    return executable;
  }

  int rank() {
    return rank.index();
  }

  /** How far this rank has come. */
  Group.Progress progress() {
    return new Group.Progress(launched, executable().stalls());
  }

  String name() {
    return report.operator();
  }

  @Override
  public OperationReport report() {
    return report;
  }

  @Override
  public long launch(long stream) {
    throwIfUnusable();
    if (inFlight()) {
      throw new UsageException(
          "%s is launched on rank %d while epoch %d is in flight; await it first"
              .formatted(report.operator(), rank(), launched),
          here());
    }
    if (executable().records(stream)) {
      executable().launch(stream, 0);
      return 0;
    }
    // Graphs that hold this operation count on their own.
    long epoch = Math.max(launched, executable().completed()) + 1;
    int other = rank.recordLaunch(number);
    if (other >= 0) {
      MismatchException failure =
          new MismatchException(
              "rank %d launches %s, its operation %d, where another rank launched operation %d"
                  .formatted(rank(), report.operator(), number, other),
              here());
      world.abort(failure);
      throw failure;
    }
    wired.enter(epoch);
    launched = epoch;
    executable().launch(stream, epoch);
    return epoch;
  }

  @Override
  public void await(long epoch, long timeoutNanos) {
    if (epoch < 1 || epoch > launched) {
      throw new UsageException(
          "epoch %d of %s is awaited on rank %d; launched are 1 to %d"
              .formatted(epoch, report.operator(), rank(), launched),
          here());
    }
    long start = System.nanoTime();
    if (!executable().await(epoch, timeoutNanos)) {
      throwIfUnusable();
      throw new DeadlineExceededException(
          "%s, epoch %d, is not done on rank %d after %.3g s"
              .formatted(report.operator(), epoch, rank(), timeoutNanos / 1e9),
          here());
    }
    long tasksDone = System.nanoTime();
    while (!wired.isComplete(epoch)) {
      throwIfUnusable();
      long now = System.nanoTime();
      if (now - tasksDone > world.waitNanos() + GRACE_NANOS) {
        List<Integer> peers = wired.pendingPeers();
        PeerLostException failure =
            new PeerLostException(
                "%s, epoch %d: transfers of rank %d to ranks %s are not complete %.3g s after its"
                        .formatted(report.operator(), epoch, rank(), peers, world.waitNanos() / 1e9)
                    + " last task",
                here().withPeer(peers.getFirst()));
        world.abort(failure);
        throw failure;
      }
      if (now - start > timeoutNanos) {
        throw new DeadlineExceededException(
            "transfers of %s, epoch %d, are not complete on rank %d after %.3g s"
                .formatted(report.operator(), epoch, rank(), timeoutNanos / 1e9),
            here());
      }
      LockSupport.parkNanos(POLL_NANOS);
    }
    if (executable().completed() < epoch) {
      throwIfUnusable();
    }
  }

  boolean inFlight() {
    long epoch = launched;
    return epoch > 0 && (executable().completed() < epoch || !wired.isComplete(epoch));
  }

  private void throwIfUnusable() {
    if (closed) {
      throw new ClosedException(
          "%s of rank %d was closed".formatted(report.operator(), rank()), here());
    }
    world.throwIfDead();
  }

  private Failure here() {
    return Failure.UNKNOWN.withRank(rank()).withOperation(report.operator());
  }

  @Override
  public void close() {
    closed = true;
    if (inFlight()) {
      world.abort(
          new ClosedException(
              "%s was closed on rank %d while epoch %d was in flight"
                  .formatted(report.operator(), rank(), launched),
              here()));
    }
    stop();
    rank.forget(this);
  }

  /** Ends lanes and proxying of this rank; memory goes when the last rank is here. */
  void stop() {
    if (stopped.compareAndSet(false, true)) {
      closed = true;
      wired.stop();
      executable().close();
      bound.forEach(DeviceTensor::unbind);
      group.release();
    }
  }

  @Override
  public void expired(ExecutionPlan.Stall stall) {
    if (!world.abort().isSet() && blaming.compareAndSet(false, true)) {
      world.abort(
          new Blame(planned.schedule(), world.group().progress(number), world.waitNanos())
              .of(stall));
    }
  }

  @Override
  public void failed(int task, Throwable cause) {
    String words = planned.schedule().describe(rank(), task);
    MKernelException failure =
        cause instanceof MKernelException known
            ? known
            : new DeviceException(
                "%s: %s failed: %s".formatted(report.operator(), words, cause),
                here().withTask(words),
                cause);
    world.abort(failure);
  }

  @Override
  public boolean tracing() {
    return world.trace().isOn();
  }

  @Override
  public void ran(int lane, int task, long epoch, long claimed, long ready, long done) {
    world.trace().add(planned.schedule(), rank(), lane, task, epoch, claimed, ready, done);
  }
}
