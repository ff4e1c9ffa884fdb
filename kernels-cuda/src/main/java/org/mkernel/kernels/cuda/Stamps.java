package org.mkernel.kernels.cuda;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.mkernel.api.schedule.RankSchedule;
import org.mkernel.api.spi.Device;
import org.mkernel.api.spi.ExecutionPlan;

/**
 * Times of tasks on the GPU's clock, which the kernel writes while a trace is taken. They are told
 * to the observer on the host's clock: the end of the last task is taken to be now.
 */
final class Stamps implements AutoCloseable {
  private final Device device;
  private final ExecutionPlan plan;
  private final RankSchedule tasks;
  private final Device.Memory memory;
  private long reportedUntil;

  private Stamps(Device device, ExecutionPlan plan, Device.Memory memory) {
    this.device = device;
    this.plan = plan;
    this.tasks = plan.schedule().rank(plan.rank());
    this.memory = memory;
  }

  static Stamps of(Device device, ExecutionPlan plan) {
    int count = plan.observer().tracing() ? plan.schedule().rank(plan.rank()).tasks() : 0;
    return new Stamps(device, plan, device.allocate((long) count * TaskLayout.STAMP, 256));
  }

  /** Where the kernel writes them; 0 when no trace is taken. */
  long address() {
    return memory.address();
  }

  /** Tells the observer what ran in the launch that has just ended. */
  void report(long epoch) {
    if (memory.bytes() == 0 || epoch <= reportedUntil) {
      return;
    }
    reportedUntil = epoch;
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment all = arena.allocate(memory.bytes(), 8);
      device.read(memory.address(), all);
      long last = 0;
      for (int task = 0; task < tasks.tasks(); task++) {
        last = Math.max(last, at(all, task, TaskLayout.STAMP_DONE));
      }
      long shift = System.nanoTime() - last;
      for (int task = 0; task < tasks.tasks(); task++) {
        plan.observer()
            .ran(
                (int) at(all, task, TaskLayout.STAMP_LANE),
                task,
                epoch,
                at(all, task, TaskLayout.STAMP_CLAIMED) + shift,
                at(all, task, TaskLayout.STAMP_READY) + shift,
                at(all, task, TaskLayout.STAMP_DONE) + shift);
      }
    }
  }

  private static long at(MemorySegment all, int task, int field) {
    return all.get(JAVA_LONG, (long) task * TaskLayout.STAMP + field);
  }

  @Override
  public void close() {
    memory.close();
  }
}
