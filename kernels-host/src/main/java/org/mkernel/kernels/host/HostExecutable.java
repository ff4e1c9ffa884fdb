package org.mkernel.kernels.host;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.mkernel.api.DeviceException;
import org.mkernel.api.Failure;
import org.mkernel.api.schedule.RankSchedule;
import org.mkernel.api.schedule.Role;
import org.mkernel.api.spi.Executable;
import org.mkernel.api.spi.ExecutionPlan;

/**
 * Runs the tasks of one rank with threads. Lanes park between launches; a launch resets the claims,
 * publishes the epoch and unparks them; the last lane that is done publishes the epoch as
 * completed.
 */
final class HostExecutable implements Executable {
  private static final long CLOSE_NANOS = TimeUnit.SECONDS.toNanos(5);

  /** Who waits is unparked when an epoch is completed; only an abort is noticed by looking. */
  private static final long AWAIT_PARK_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

  private final ExecutionPlan plan;
  private final RankSchedule tasks;
  private final List<Lane> lanes = new ArrayList<>();
  private final List<Thread> threads = new ArrayList<>();

  /** By pool, the next task to claim, counted from the pool's first. */
  private final AtomicIntegerArray claims;

  private final AtomicInteger busy = new AtomicInteger();
  private volatile long launched;
  private volatile long completed;
  private volatile boolean closed;
  private volatile @Nullable Thread waiter;

  HostExecutable(ExecutionPlan plan, ThreadFactory factory) {
    this.plan = plan;
    this.tasks = plan.schedule().rank(plan.rank());
    this.claims = new AtomicIntegerArray(tasks.pools());
    Reachability.check(plan);
    BufferTable buffers = new BufferTable(plan);
    for (int r = 0; r < tasks.roles().size(); r++) {
      Role role = tasks.roles().get(r);
      for (int i = 0; i < plan.lanes(r); i++) {
        Lane lane = new Lane(this, plan, buffers, role, lanes.size());
        lanes.add(lane);
        Thread thread = Objects.requireNonNull(factory.newThread(lane), "a thread of the factory");
        thread.setName("mkernel-rank-%d-%s-%d".formatted(plan.rank(), role.name(), i));
        thread.setDaemon(true);
        threads.add(thread);
      }
    }
    start();
  }

  private void start() {
    int started = 0;
    try {
      for (; started < threads.size(); started++) {
        threads.get(started).start();
      }
    } catch (OutOfMemoryError e) {
      threads.subList(started, threads.size()).clear();
      close();
      throw new DeviceException(
          "%d of %d lanes of rank %d can be started: %s"
              .formatted(started, lanes.size(), plan.rank(), e.getMessage()),
          Failure.remedy("use fewer lanes or ranks, or raise the limit of threads")
              .withRank(plan.rank())
              .withOperation(plan.schedule().name()),
          e);
    }
  }

  @Override
  public void launch(long stream, long epoch) {
    for (int pool = 0; pool < claims.length(); pool++) {
      claims.setPlain(pool, 0);
    }
    if (lanes.isEmpty()) {
      launched = epoch;
      completed = epoch;
      return;
    }
    busy.setPlain(lanes.size());
    launched = epoch;
    for (int i = 0; i < threads.size(); i++) {
      LockSupport.unpark(threads.get(i));
    }
  }

  @Override
  public long completed() {
    return completed;
  }

  @Override
  public boolean await(long epoch, long nanos) {
    if (completed >= epoch) {
      return true;
    }
    long deadline = System.nanoTime() + nanos;
    waiter = Thread.currentThread();
    boolean interrupted = false;
    try {
      while (completed < epoch) {
        long left = deadline - System.nanoTime();
        if (left <= 0 || plan.abort().isSet() || closed) {
          return completed >= epoch;
        }
        LockSupport.parkNanos(this, Math.min(left, AWAIT_PARK_NANOS));
        interrupted |= Thread.interrupted(); // Else it would not park again.
      }
      return true;
    } finally {
      waiter = null;
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  @Override
  public List<ExecutionPlan.Stall> stalls() {
    List<ExecutionPlan.Stall> all = new ArrayList<>();
    for (Lane lane : lanes) {
      lane.addStalls(all);
    }
    return all;
  }

  /** Waits for a launch after an epoch; returns 0 when there will be none. For lanes. */
  @SuppressWarnings("ThreadPriorityCheck") // A hint: lanes share processors; parking follows.
  long nextLaunch(long after) {
    for (int spins = 0; ; spins++) {
      long epoch = launched;
      if (epoch > after) {
        return epoch;
      }
      if (closed) {
        return 0;
      }
      if (spins < Idle.YIELDS) {
        Thread.yield();
      } else {
        LockSupport.park(this);
        // An interrupt would keep it from parking; it is close() that ends a lane.
        boolean _ = Thread.interrupted();
      }
    }
  }

  /** Claims the next task of a pool; returns −1 when none is left. For lanes. */
  int claim(int pool) {
    int task = tasks.poolFirst(pool) + claims.getAndIncrement(pool);
    return task < tasks.poolFirst(pool + 1) ? task : -1;
  }

  /** The task that would be claimed next, or −1. For lanes. */
  int head(int pool) {
    int task = tasks.poolFirst(pool) + claims.get(pool);
    return task < tasks.poolFirst(pool + 1) ? task : -1;
  }

  /** Claims the head if it is still that task. For lanes. */
  boolean claimHead(int pool, int task) {
    int index = task - tasks.poolFirst(pool);
    return claims.compareAndSet(pool, index, index + 1);
  }

  /** A lane has drained its pools. */
  void done(long epoch) {
    if (busy.decrementAndGet() == 0) {
      completed = epoch;
      LockSupport.unpark(waiter);
    }
  }

  @Override
  public void close() {
    closed = true;
    threads.forEach(LockSupport::unpark);
    LockSupport.unpark(waiter);
    long deadline = System.nanoTime() + CLOSE_NANOS;
    boolean interrupted = false;
    for (Thread thread : threads) {
      while (thread.isAlive() && System.nanoTime() - deadline < 0) {
        try {
          thread.join(Duration.ofNanos(Math.max(1, deadline - System.nanoTime())));
        } catch (InterruptedException e) {
          interrupted = true;
        }
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
    List<String> alive =
        threads.stream().filter(Thread::isAlive).map(Thread::getName).sorted().toList();
    if (!alive.isEmpty()) {
      throw new DeviceException(
          "lanes of %s do not leave: %s".formatted(plan.schedule().name(), alive),
          Failure.remedy("look for a kernel that does not return")
              .withRank(plan.rank())
              .withOperation(plan.schedule().name()));
    }
  }
}
