package org.mkernel.runtime;

import java.util.List;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.spi.Abort;
import org.mkernel.api.spi.ExecutionPlan;
import org.mkernel.api.spi.KernelSet;

/**
 * A schedule bound to memory.
 *
 * @param schedule the schedule
 * @param rank whose tasks
 * @param buffers addresses by owner and buffer
 * @param slots bytes of a slot by buffer
 * @param signalBases addresses by owner
 * @param laneCounts lanes by role
 * @param transfers transfer by task, −1 for none
 * @param commands where commands go
 * @param kernels kernel sets of the device
 * @param waitNanos how long one wait may take
 * @param abort what ends all waits
 * @param observer who hears of it
 */
record BoundPlan(
    Schedule schedule,
    int rank,
    long[][] buffers,
    long[] slots,
    long[] signalBases,
    int[] laneCounts,
    int[] transfers,
    Commands commands,
    List<KernelSet> kernels,
    long waitNanos,
    Abort abort,
    Observer observer)
    implements ExecutionPlan {

  @Override
  public long buffer(int owner, int buffer) {
    return buffers[owner][buffer];
  }

  @Override
  public long slotBytes(int buffer) {
    return slots[buffer];
  }

  @Override
  public long signals(int owner) {
    return signalBases[owner];
  }

  @Override
  public int lanes(int role) {
    return laneCounts[role];
  }

  @Override
  public int transfer(int task) {
    return transfers[task];
  }
}
