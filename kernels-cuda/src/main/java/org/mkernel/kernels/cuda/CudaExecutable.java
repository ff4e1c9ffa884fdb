package org.mkernel.kernels.cuda;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.VarHandle;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.mkernel.api.DeviceException;
import org.mkernel.api.Failure;
import org.mkernel.api.UsageException;
import org.mkernel.api.schedule.RankSchedule;
import org.mkernel.api.schedule.Role;
import org.mkernel.api.spi.Device;
import org.mkernel.api.spi.Executable;
import org.mkernel.api.spi.ExecutionPlan;

/**
 * Runs the tasks of one rank by one persistent kernel. All that a launch needs lies in device
 * memory and in the parameters of the kernel, which never change: the kernel itself counts epochs
 * and says in pinned memory how far it is and what it waited for in vain.
 */
final class CudaExecutable implements Executable {
  private static final VarHandle LONG = JAVA_LONG.varHandle();

  /** Of the pinned memory: the last epoch, then a report. */
  private static final long PROGRESS = 0;

  private static final long REPORT = 128;
  private static final long PINNED = 256;

  private static final int SPINS = 2000;
  private static final long PARK_NANOS = TimeUnit.MICROSECONDS.toNanos(20);
  private static final long CHECK_NANOS = TimeUnit.MILLISECONDS.toNanos(2);
  private static final long CLOSE_NANOS = TimeUnit.SECONDS.toNanos(5);

  private final CudaDevice device;
  private final ExecutionPlan plan;
  private final RankSchedule tasks;
  private final List<AutoCloseable> owned = new ArrayList<>();
  private final Interpreter interpreter;
  private final CudaLaunch launch;
  private final MemorySegment words;
  private final Device.Memory state;
  private final Stamps stamps;
  private final int lanes;
  private volatile long launched;
  private boolean abortSent;
  private boolean reported;

  CudaExecutable(CudaDevice device, ExecutionPlan plan) {
    this.device = device;
    this.plan = plan;
    this.tasks = plan.schedule().rank(plan.rank());
    boolean done = false;
    try (Arena arena = Arena.ofShared();
        CudaContext.Scope _ = device.context().enter()) {
      lanes = lanes();
      Interpreter.Variant variant = Interpreter.Variant.of(plan.schedule());
      interpreter = own(Interpreter.load(device.context(), variant));
      interpreter.requireResident(lanes, device.multiprocessors(), tasks.roles(), plan);

      TaskEncoder encoder = new TaskEncoder(plan, variant.dtype());
      List<int[]> items = encoder.items();
      Device.Memory scratch = own(device.allocate(encoder.scratchBytes(), 256));
      state = own(device.allocate(TaskLayout.STATE + 4L * TaskLayout.MAX_POOLS, 256));
      Device.Pinned pinned = own(device.pinned(PINNED, 256));
      words = HostMemory.segment(pinned.hostAddress(), PINNED);
      stamps = own(Stamps.of(device, plan));

      launch = own(interpreter.launch(lanes));
      MemorySegment parameter = launch.parameter(0);
      parameter.set(JAVA_LONG, TaskLayout.PLAN_STATE, state.address());
      parameter.set(JAVA_LONG, TaskLayout.PLAN_PROGRESS, pinned.address() + PROGRESS);
      parameter.set(JAVA_LONG, TaskLayout.PLAN_REPORT, pinned.address() + REPORT);
      parameter.set(JAVA_LONG, TaskLayout.PLAN_STAMPS, stamps.address());
      parameter.set(JAVA_LONG, TaskLayout.PLAN_WAIT_NANOS, plan.waitNanos());
      parameter.set(JAVA_INT, TaskLayout.PLAN_LANES, lanes);
      encodeRoles(encoder, items, scratch.address(), parameter, arena);
      MemorySegment maps = encoder.maps().encode(arena);
      parameter.set(JAVA_LONG, TaskLayout.PLAN_MAPS, upload(maps));
      parameter.set(JAVA_INT, TaskLayout.PLAN_MAP_COUNT, encoder.maps().count());
      done = true;
    } finally {
      if (!done) {
        free();
      }
    }
  }

  private <T extends AutoCloseable> T own(T resource) {
    owned.add(resource);
    return resource;
  }

  private int lanes() {
    int sum = 0;
    for (int role = 0; role < tasks.roles().size(); role++) {
      if (tasks.roles().get(role).readyFirst()) {
        throw new UsageException(
            "role %s of %s claims what is ready first, which the device cuda does not do yet"
                .formatted(tasks.roles().get(role).name(), plan.schedule().name()),
            Failure.remedy("use the device host for worlds of several ranks")
                .withRank(plan.rank())
                .withOperation(plan.schedule().name()));
      }
      sum += plan.lanes(role);
    }
    return sum;
  }

  private void encodeRoles(
      TaskEncoder encoder, List<int[]> items, long scratch, MemorySegment parameter, Arena arena) {
    List<Role> roles = tasks.roles();
    int pools = roles.stream().mapToInt(role -> role.pools().length).sum();
    if (roles.size() > TaskLayout.MAX_ROLES || pools > TaskLayout.MAX_POOLS) {
      throw new UsageException(
          "%s has %d roles with %d pools; the device cuda runs at most %d with %d"
              .formatted(
                  plan.schedule().name(),
                  roles.size(),
                  pools,
                  TaskLayout.MAX_ROLES,
                  TaskLayout.MAX_POOLS),
          Failure.remedy("plan fewer pools").withRank(plan.rank()));
    }
    int next = 0;
    for (int r = 0; r < roles.size(); r++) {
      long role = TaskLayout.PLAN_ROLES + (long) r * TaskLayout.ROLE;
      parameter.set(JAVA_INT, role + TaskLayout.ROLE_FIRST_POOL, next);
      parameter.set(JAVA_INT, role + TaskLayout.ROLE_POOLS, roles.get(r).pools().length);
      parameter.set(JAVA_INT, role + TaskLayout.ROLE_LANES, plan.lanes(r));
      for (int pool : roles.get(r).pools()) {
        TaskEncoder.Pool encoded = encoder.encode(items.get(pool), scratch, arena);
        long at = TaskLayout.PLAN_POOLS + (long) next * TaskLayout.POOL;
        parameter.set(JAVA_LONG, at + TaskLayout.POOL_TASKS, upload(encoded.tasks()));
        parameter.set(
            JAVA_LONG, at + TaskLayout.POOL_CLAIMS, state.address() + TaskLayout.STATE + 4L * next);
        parameter.set(JAVA_INT, at + TaskLayout.POOL_COUNT, encoded.count());
        parameter.set(JAVA_INT, at + TaskLayout.POOL_STRIDE, encoded.stride());
        next++;
      }
    }
    parameter.set(JAVA_INT, TaskLayout.PLAN_ROLE_COUNT, roles.size());
    parameter.set(JAVA_INT, TaskLayout.PLAN_POOL_COUNT, pools);
  }

  private long upload(MemorySegment bytes) {
    Device.Memory memory = own(device.allocate(bytes.byteSize(), 256));
    device.write(bytes, memory.address());
    return memory.address();
  }

  @Override
  public boolean records(long stream) {
    return stream != 0 && StreamHandle.isCapturing(device.context(), stream);
  }

  @Override
  public void launch(long stream, long epoch) {
    if (epoch > 0) {
      launched = epoch;
    }
    if (lanes > 0) {
      launch.launch(stream == 0 ? device.stream().address() : stream);
    } else if (epoch > 0) {
      LONG.setRelease(words, PROGRESS, epoch); // There is nothing to run.
    }
  }

  @Override
  public long completed() {
    return (long) LONG.getAcquire(words, PROGRESS);
  }

  @Override
  public boolean await(long epoch, long nanos) {
    long deadline = System.nanoTime() + nanos;
    long checked = System.nanoTime();
    boolean interrupted = false;
    try {
      for (int spins = 0; completed() < epoch; spins++) {
        if (spins < SPINS) {
          Thread.onSpinWait();
          continue;
        }
        long now = System.nanoTime();
        if (reportStall() || abortIfDead() || now - deadline > 0) {
          return completed() >= epoch && !reported;
        }
        if (now - checked > CHECK_NANOS) {
          checked = now;
          if (!isDriverWell()) {
            return false;
          }
        }
        LockSupport.parkNanos(this, Math.min(PARK_NANOS, Math.max(1, deadline - now)));
        interrupted |= Thread.interrupted(); // Else it would not park again.
      }
      if (reportStall()) {
        return false;
      }
      stamps.report(epoch);
      return true;
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /** Tells the observer of a wait that expired on the device, once. */
  private boolean reportStall() {
    if ((long) LONG.getAcquire(words, REPORT + TaskLayout.REPORT_WRITTEN) == 0) {
      return false;
    }
    if (!reported) {
      reported = true;
      plan.observer().expired(stall());
    }
    return true;
  }

  private ExecutionPlan.Stall stall() {
    int task = words.get(JAVA_INT, REPORT + TaskLayout.REPORT_TASK);
    return new ExecutionPlan.Stall(
        plan.rank(),
        words.get(JAVA_INT, REPORT + TaskLayout.REPORT_LANE),
        task,
        signal(task, words.get(JAVA_LONG, REPORT + TaskLayout.REPORT_SIGNAL)),
        words.get(JAVA_LONG, REPORT + TaskLayout.REPORT_WANTED),
        words.get(JAVA_LONG, REPORT + TaskLayout.REPORT_SEEN),
        words.get(JAVA_LONG, REPORT + TaskLayout.REPORT_EPOCH));
  }

  /**
   * The signal at an address; of a counter that the encoder added, the first that its task awaits.
   */
  private int signal(int task, long address) {
    long signal = (address - plan.signals(plan.rank())) / Long.BYTES;
    if (signal >= 0 && signal < plan.schedule().signalCount()) {
      return (int) signal;
    }
    if (tasks.firstWait(task) < tasks.firstWait(task + 1)) {
      return tasks.waitSignal(tasks.firstWait(task));
    }
    int end = tasks.firstPart(tasks.firstStream(task + 1));
    for (int part = tasks.firstPart(tasks.firstStream(task)); part < end; part++) {
      if (tasks.partSignal(part) != RankSchedule.NO_SIGNAL) {
        return tasks.partSignal(part);
      }
    }
    return 0;
  }

  /** Passes the end of the world on to the kernel. */
  private boolean abortIfDead() {
    if (!plan.abort().isSet()) {
      return false;
    }
    if (!abortSent) {
      abortSent = true;
      try (Arena arena = Arena.ofConfined()) {
        MemorySegment word = arena.allocate(JAVA_INT);
        word.set(JAVA_INT, 0, 1);
        device.write(word, state.address() + TaskLayout.STATE_ABORT);
      }
    }
    return true;
  }

  private boolean isDriverWell() {
    try {
      boolean _ = device.stream().isIdle();
      return true;
    } catch (DeviceException e) {
      plan.observer().failed(0, e);
      return false;
    }
  }

  @Override
  public List<ExecutionPlan.Stall> stalls() {
    return (long) LONG.getAcquire(words, REPORT + TaskLayout.REPORT_WRITTEN) == 0
        ? List.of()
        : List.of(stall());
  }

  @Override
  public void close() {
    long deadline = System.nanoTime() + CLOSE_NANOS;
    while (completed() < launched && isDriverWell()) {
      boolean _ = abortIfDead();
      if (System.nanoTime() - deadline > 0) {
        throw new DeviceException(
            "the kernel of %s does not leave the GPU %d s after its world was aborted"
                .formatted(plan.schedule().name(), TimeUnit.NANOSECONDS.toSeconds(CLOSE_NANOS)),
            Failure.remedy("end the process; look for another program that holds the GPU")
                .withRank(plan.rank())
                .withOperation(plan.schedule().name()));
      }
      LockSupport.parkNanos(this, PARK_NANOS);
    }
    free();
  }

  private void free() {
    RuntimeException failure = null;
    for (AutoCloseable resource : owned.reversed()) {
      try {
        resource.close();
      } catch (RuntimeException e) {
        failure = failure == null ? e : failure;
      } catch (Exception e) {
        throw new IllegalStateException("closes without checked exceptions", e);
      }
    }
    owned.clear();
    if (failure != null) {
      throw failure;
    }
  }
}
