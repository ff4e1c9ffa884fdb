package org.mkernel.check;

import org.mkernel.api.DType;
import org.mkernel.api.schedule.Kernel;
import org.mkernel.api.schedule.RankSchedule;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.schedule.TaskKind;

/** How long a lane works for a task, in nanoseconds, when it has a processor of its own. */
final class TaskCosts {
  private final Schedule schedule;
  private final Machine machine;

  TaskCosts(Schedule schedule, Machine machine) {
    this.schedule = schedule;
    this.machine = machine;
  }

  /** The whole task. A put is counted here when it is mapped. */
  double nanos(RankSchedule tasks, int task) {
    TaskKind kind = tasks.kind(task);
    return machine.taskNanos()
        + switch (kind) {
          case COMPUTE -> compute(tasks, task);
          case REDUCE -> seconds(bytes(tasks, task), machine.memoryBytesPerSecond()) * 1e9;
          case PUT -> seconds(putBytes(tasks, task), machine.putBytesPerSecond()) * 1e9;
          case NOTIFY -> 0;
        };
  }

  private double compute(RankSchedule tasks, int task) {
    Kernel kernel = schedule.kernels().get(tasks.kernel(task));
    if (!kernel.kind().equals(Kernel.GEMM)) {
      return seconds(bytes(tasks, task), machine.memoryBytesPerSecond()) * 1e9;
    }
    int output = tasks.output(tasks.firstOutput(task));
    DType dtype = schedule.buffers().get(tasks.regionBuffer(output)).dtype();
    return gemmFlops(schedule, tasks, task) / machine.rate(kernel.kind(), dtype) * 1e9;
  }

  /** Operations of a product, 2 for each multiply-add. */
  static double gemmFlops(Schedule schedule, RankSchedule tasks, int task) {
    double elements = 0;
    for (int o = tasks.firstOutput(task); o < tasks.firstOutput(task + 1); o++) {
      int region = tasks.output(o);
      elements += (double) tasks.regionBytes(region) / elementBytes(schedule, tasks, region);
    }
    double depth = 0;
    int stream = tasks.firstStream(task);
    for (int part = tasks.firstPart(stream); part < tasks.firstPart(stream + 1); part++) {
      int region = tasks.partRegion(part);
      depth += (double) tasks.regionRowBytes(region) / elementBytes(schedule, tasks, region);
    }
    return 2 * elements * depth;
  }

  private static int elementBytes(Schedule schedule, RankSchedule tasks, int region) {
    return schedule.buffers().get(tasks.regionBuffer(region)).dtype().bytes();
  }

  private static double bytes(RankSchedule tasks, int task) {
    double bytes = 0;
    int end = tasks.firstPart(tasks.firstStream(task + 1));
    for (int part = tasks.firstPart(tasks.firstStream(task)); part < end; part++) {
      bytes += tasks.regionBytes(tasks.partRegion(part));
    }
    for (int o = tasks.firstOutput(task); o < tasks.firstOutput(task + 1); o++) {
      bytes += tasks.regionBytes(tasks.output(o));
    }
    return bytes;
  }

  /** What a put moves; 0 for other tasks. */
  static double putBytes(RankSchedule tasks, int task) {
    return tasks.kind(task) == TaskKind.PUT
        ? tasks.regionBytes(tasks.output(tasks.firstOutput(task)))
        : 0;
  }

  static double seconds(double bytes, double bytesPerSecond) {
    return bytesPerSecond == 0 ? 0 : bytes / bytesPerSecond;
  }
}
