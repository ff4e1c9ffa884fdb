package org.mkernel.kernels.host;

import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.mkernel.api.DType;
import org.mkernel.api.UnavailableException;
import org.mkernel.api.schedule.Kernel;
import org.mkernel.api.schedule.RankSchedule;
import org.mkernel.api.schedule.Role;
import org.mkernel.api.schedule.SignalSpec;
import org.mkernel.api.spi.ExecutionPlan;
import org.mkernel.api.spi.HostKernelSet;
import org.mkernel.api.spi.KernelSet;

/** A thread that drains the pools of one role, launch after launch. Its loops allocate nothing. */
final class Lane implements Runnable, HostKernelSet.HostTask {
  private static final int NO_TASK = -1;

  private final HostExecutable executable;
  private final ExecutionPlan plan;
  private final RankSchedule tasks;
  private final BufferTable buffers;
  private final Role role;
  private final int[] pools;
  private final int lane;
  private final boolean[] counter;
  private final long ownSignals;
  private final Reducer reducer = new Reducer(Epilogue.NONE);
  private final HostKernelSet.@Nullable HostKernel[] kernels;

  private long epoch;
  private int task = NO_TASK;
  private long ready;
  private int region;

  // What the lane waits for, for those who look for the culprit of a stall.
  // Written in the reverse of this order, so that who reads a task finds the rest.
  private volatile int stalledTask = NO_TASK;
  private volatile int stalledSignal;
  private volatile long stalledWanted;
  private volatile long stalledEpoch;

  Lane(HostExecutable executable, ExecutionPlan plan, BufferTable buffers, Role role, int lane) {
    this.executable = executable;
    this.plan = plan;
    this.tasks = plan.schedule().rank(plan.rank());
    this.buffers = buffers;
    this.role = role;
    this.pools = role.pools();
    this.lane = lane;
    this.ownSignals = plan.signals(plan.rank());
    this.counter = new boolean[plan.schedule().signalCount()];
    for (SignalSpec spec : plan.schedule().signals()) {
      for (int s = spec.first(); s < spec.first() + spec.count(); s++) {
        counter[s] = spec.kind() == SignalSpec.Kind.COUNTER;
      }
    }
    this.kernels = new HostKernelSet.HostKernel[plan.schedule().kernels().size()];
    for (int pool : pools) {
      for (int t = tasks.poolFirst(pool); t < tasks.poolFirst(pool + 1); t++) {
        int k = tasks.kernel(t);
        if (k >= 0 && kernels[k] == null) {
          kernels[k] = body(plan.schedule().kernels().get(k));
        }
      }
    }
  }

  private HostKernelSet.HostKernel body(Kernel kernel) {
    for (KernelSet set : plan.kernels()) {
      if (set instanceof HostKernelSet host && host.supports(kernel.kind())) {
        return host.kernel(kernel);
      }
    }
    throw new UnavailableException("no kernel set of the host has " + kernel.kind());
  }

  /** Leaves the launch: the world is dead. Control flow only, so without a trace. */
  private static final class Left extends RuntimeException {
    private static final long serialVersionUID = 1L;

    @SuppressWarnings("StaticAssignmentOfThrowable") // It has no trace to be wrong.
    private static final Left INSTANCE = new Left();

    private Left() {
      super("the launch was left", null, false, false);
    }
  }

  @Override
  public void run() {
    try {
      long next = executable.nextLaunch(0);
      while (next != 0) {
        epoch = next;
        if (role.readyFirst()) {
          drainReadyFirst();
        } else {
          drainInOrder();
        }
        executable.done(epoch);
        next = executable.nextLaunch(epoch);
      }
    } catch (Left e) {
      // The observer knows why.
    } catch (Throwable e) {
      plan.observer().failed(Math.max(task, 0), e);
    } finally {
      for (HostKernelSet.HostKernel kernel : kernels) {
        if (kernel != null) {
          kernel.close();
        }
      }
    }
  }

  private void drainInOrder() {
    for (int pool : pools) {
      for (int next = executable.claim(pool); next >= 0; next = executable.claim(pool)) {
        runTask(next);
      }
    }
  }

  private void drainReadyFirst() {
    int waiting = NO_TASK;
    int idle = 0;
    long since = 0;
    while (true) {
      boolean left = false;
      boolean ran = false;
      int unmet = NO_TASK;
      for (int pool : pools) {
        int head = executable.head(pool);
        if (head < 0) {
          continue;
        }
        left = true;
        if (firstUnmet(head) >= 0) {
          unmet = unmet < 0 ? head : unmet;
        } else if (executable.claimHead(pool, head)) {
          runTask(head);
          ran = true;
        }
      }
      if (!left) {
        stalledTask = NO_TASK;
        return;
      }
      if (ran || unmet < 0 || unmet != waiting) {
        // Progress, by this lane or another: what is waited for now has its own deadline.
        waiting = ran ? NO_TASK : unmet;
        idle = 0;
        since = System.nanoTime();
        stalledTask = NO_TASK;
      } else {
        restAtHead(waiting, idle++, since);
      }
    }
  }

  /** The first wait of a head that is not met stands for all: this is the one that is reported. */
  private void restAtHead(int head, int idle, long since) {
    int wait = firstUnmet(head);
    if (wait >= 0) {
      task = head;
      restOrLeave(tasks.waitSignal(wait), wanted(wait), idle, since);
    }
  }

  private int firstUnmet(int of) {
    for (int wait = tasks.firstWait(of); wait < tasks.firstWait(of + 1); wait++) {
      if (seen(tasks.waitSignal(wait)) < wanted(wait)) {
        return wait;
      }
    }
    return -1;
  }

  private long wanted(int wait) {
    return (epoch - tasks.waitLag(wait)) * tasks.waitCount(wait);
  }

  private void runTask(int next) {
    task = next;
    if (plan.abort().isSet()) {
      throw Left.INSTANCE;
    }
    boolean tracing = plan.observer().tracing();
    long claimed = tracing ? System.nanoTime() : 0;
    for (int wait = tasks.firstWait(next); wait < tasks.firstWait(next + 1); wait++) {
      await(tasks.waitSignal(wait), wanted(wait));
    }
    ready = tracing ? System.nanoTime() : 0;
    boolean raise =
        switch (tasks.kind(next)) {
          case COMPUTE -> compute(next);
          case PUT -> put(next);
          case REDUCE -> reduce();
          case NOTIFY -> notifies(next);
        };
    if (raise) {
      for (int r = tasks.firstRaise(next); r < tasks.firstRaise(next + 1); r++) {
        raise(tasks.raiseRank(r), tasks.raiseSignal(r));
      }
    }
    if (tracing) {
      plan.observer().ran(lane, next, epoch, claimed, ready, System.nanoTime());
    }
  }

  private boolean compute(int next) {
    HostKernelSet.HostKernel kernel = kernels[tasks.kernel(next)];
    if (kernel == null) {
      throw new IllegalStateException("role " + role.name() + " claimed a task of another role");
    }
    kernel.run(this);
    return true;
  }

  private boolean put(int next) {
    int transfer = plan.transfer(next);
    if (transfer >= 0) {
      command(transfer);
      return false;
    }
    select(0, 0);
    long from = address();
    long fromPitch = pitch();
    long count = rows();
    long bytes = rowBytes();
    selectOutput(0);
    Memory.copyRows(from, fromPitch, address(), pitch(), count, bytes);
    return true;
  }

  private boolean reduce() {
    int sources = parts(0);
    reducer.begin(sources);
    for (int part = 0; part < sources; part++) {
      select(0, part);
      reducer.source(part, dtype(), address(), pitch());
    }
    selectOutput(0);
    reducer.run(dtype(), address(), pitch(), rows(), rowBytes());
    return true;
  }

  private boolean notifies(int next) {
    int transfer = plan.transfer(next);
    if (transfer >= 0) {
      command(transfer);
      return false;
    }
    return true;
  }

  /** Says to the proxy that a transfer is due; the wire raises its signal. */
  private void command(int transfer) {
    if (plan.commands().offer(transfer, epoch)) {
      return;
    }
    long since = System.nanoTime();
    for (int idle = 1; !plan.commands().offer(transfer, epoch); idle++) {
      if (plan.abort().isSet()) {
        throw Left.INSTANCE;
      }
      if (System.nanoTime() - since > plan.waitNanos()) {
        throw new IllegalStateException(
            "the command queue stayed full for %.3g s: the proxy or the transport stands still"
                .formatted(plan.waitNanos() / 1e9));
      }
      Idle.rest(idle);
    }
  }

  private void raise(int owner, int signal) {
    long address = plan.signals(owner) + 8L * signal;
    if (counter[signal]) {
      Memory.addRelease(address);
    } else {
      Memory.release(address, epoch);
    }
  }

  private long seen(int signal) {
    return Memory.acquire(ownSignals + 8L * signal);
  }

  /** The one wait: bounded, and ended by an abort. */
  private void await(int signal, long wanted) {
    if (seen(signal) >= wanted) {
      return;
    }
    long since = System.nanoTime();
    for (int idle = 0; seen(signal) < wanted; idle++) {
      restOrLeave(signal, wanted, idle, since);
    }
    stalledTask = NO_TASK;
  }

  private void restOrLeave(int signal, long wanted, int idle, long since) {
    if (plan.abort().isSet()) {
      throw Left.INSTANCE;
    }
    if (idle >= Idle.SPINS && (stalledTask != task || stalledSignal != signal)) {
      stalledTask = NO_TASK;
      stalledEpoch = epoch;
      stalledWanted = wanted;
      stalledSignal = signal;
      stalledTask = task;
    }
    if (idle > Idle.SPINS && System.nanoTime() - since > plan.waitNanos()) {
      plan.observer()
          .expired(
              new ExecutionPlan.Stall(
                  plan.rank(), lane, task, signal, wanted, seen(signal), epoch));
      throw Left.INSTANCE;
    }
    Idle.rest(idle);
  }

  /** What the lane waits for now. For other threads. */
  Optional<ExecutionPlan.Stall> stall() {
    int at = stalledTask;
    if (at == NO_TASK) {
      return Optional.empty();
    }
    int signal = stalledSignal;
    long wanted = stalledWanted;
    long during = stalledEpoch;
    long value = seen(signal);
    if (stalledTask != at || value >= wanted) {
      return Optional.empty();
    }
    return Optional.of(
        new ExecutionPlan.Stall(plan.rank(), lane, at, signal, wanted, value, during));
  }

  /** What it waits for now: where it claims what is ready first, at the head of each pool. */
  void addStalls(List<ExecutionPlan.Stall> to) {
    Optional<ExecutionPlan.Stall> own = stall();
    if (own.isEmpty()) {
      return;
    }
    to.add(own.get());
    for (int i = 0; role.readyFirst() && i < pools.length; i++) {
      int head = executable.head(pools[i]);
      if (head >= 0 && head != own.get().task()) {
        addStall(head, own.get().epoch(), to);
      }
    }
  }

  private void addStall(int head, long during, List<ExecutionPlan.Stall> to) {
    for (int wait = tasks.firstWait(head); wait < tasks.firstWait(head + 1); wait++) {
      int signal = tasks.waitSignal(wait);
      long value = seen(signal);
      long wants = (during - tasks.waitLag(wait)) * tasks.waitCount(wait);
      if (value < wants) {
        to.add(new ExecutionPlan.Stall(plan.rank(), lane, head, signal, wants, value, during));
        return;
      }
    }
  }

  @Override
  public int parts(int stream) {
    int index = tasks.firstStream(task) + stream;
    return index < tasks.firstStream(task + 1)
        ? tasks.firstPart(index + 1) - tasks.firstPart(index)
        : 0;
  }

  @Override
  public void select(int stream, int part) {
    int index = tasks.firstPart(tasks.firstStream(task) + stream) + part;
    int signal = tasks.partSignal(index);
    if (signal != RankSchedule.NO_SIGNAL) {
      await(signal, (epoch - tasks.partLag(index)) * tasks.partCount(index));
    }
    region = tasks.partRegion(index);
  }

  @Override
  public void selectOutput(int output) {
    region = tasks.output(tasks.firstOutput(task) + output);
  }

  @Override
  public long address() {
    return buffers.address(tasks.regionRank(region), tasks.regionBuffer(region), epoch)
        + tasks.regionOffset(region);
  }

  @Override
  public long rows() {
    return tasks.regionRows(region);
  }

  @Override
  public long rowBytes() {
    return tasks.regionRowBytes(region);
  }

  @Override
  public long pitch() {
    return tasks.regionPitch(region);
  }

  @Override
  public DType dtype() {
    return buffers.dtype(tasks.regionBuffer(region));
  }
}
