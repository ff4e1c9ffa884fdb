package org.mkernel.kernels.cuda;

import org.mkernel.api.Activation;

/**
 * Where fields lie in what the kernel reads and writes, in bytes. The device sources define the
 * same structures in {@code task.cuh}; a test compiles the two against each other.
 */
final class TaskLayout {
  /** What of a task the kernel keeps in shared memory. */
  static final int SLOT = 512;

  static final int TASK = 16;
  static final int TASK_KIND = 0;
  static final int TASK_ACTIVATION = 1;
  static final int TASK_BIASED = 2;
  static final int TASK_OUTPUTS = 3;
  static final int TASK_RAISES = 4;
  static final int TASK_WAITS = 5;
  static final int TASK_PARTS = 6;
  static final int TASK_NUMBER = 8;
  static final int TASK_BLOCKS = 12;

  static final int REGION = 64;
  static final int REGION_ADDRESS = 0;
  static final int REGION_PITCH = 8;
  static final int REGION_ROW_BYTES = 16;
  static final int REGION_ROWS = 24;
  static final int REGION_SLOT_BYTES = 32;
  static final int REGION_DEPTH = 40;
  static final int REGION_MAP = 44;
  static final int REGION_X = 48;
  static final int REGION_Y = 52;

  static final int WAIT = 16;
  static final int WAIT_SIGNAL = 0;
  static final int WAIT_COUNT = 8;
  static final int WAIT_LAG = 12;
  static final int WAIT_SYSTEM = 14;

  static final int RAISE = 16;
  static final int RAISE_SIGNAL = 0;
  static final int RAISE_KIND = 8;

  /** A region, then its wait. */
  static final int PART = REGION + WAIT;

  static final int PLAN = 576;
  static final int PLAN_STATE = 0;
  static final int PLAN_MAPS = 8;
  static final int PLAN_PROGRESS = 16;
  static final int PLAN_REPORT = 24;
  static final int PLAN_STAMPS = 32;
  static final int PLAN_WAIT_NANOS = 40;
  static final int PLAN_LANES = 48;
  static final int PLAN_ROLE_COUNT = 52;
  static final int PLAN_POOL_COUNT = 56;
  static final int PLAN_MAP_COUNT = 60;
  static final int PLAN_ROLES = 64;
  static final int MAX_ROLES = 8;
  static final int PLAN_POOLS = 192;
  static final int MAX_POOLS = 16;

  static final int ROLE = 16;
  static final int ROLE_FIRST_POOL = 0;
  static final int ROLE_POOLS = 4;
  static final int ROLE_LANES = 8;

  static final int POOL = 24;
  static final int POOL_TASKS = 0;
  static final int POOL_CLAIMS = 8;
  static final int POOL_COUNT = 16;
  static final int POOL_STRIDE = 20;

  static final int STATE = 24;
  static final int STATE_ABORT = 16;

  static final int REPORT = 48;
  static final int REPORT_WRITTEN = 0;
  static final int REPORT_LANE = 8;
  static final int REPORT_TASK = 12;
  static final int REPORT_SIGNAL = 16;
  static final int REPORT_WANTED = 24;
  static final int REPORT_SEEN = 32;
  static final int REPORT_EPOCH = 40;

  static final int STAMP = 32;
  static final int STAMP_CLAIMED = 0;
  static final int STAMP_READY = 8;
  static final int STAMP_DONE = 16;
  static final int STAMP_LANE = 24;

  static final int NO_MAP = -1;

  /** Kinds of tasks. */
  static final int GEMM = 1;

  static final int COPY = 2;
  static final int REDUCE = 3;
  static final int NOTIFY = 4;

  /** Kinds of raises. */
  static final int FLAG_DEVICE = 0;

  static final int FLAG_SYSTEM = 1;
  static final int COUNTER_DEVICE = 2;
  static final int COUNTER_SYSTEM = 3;

  private TaskLayout() {}

  /** The number of an activation. */
  static int number(Activation activation) {
    return switch (activation) {
      case NONE -> 0;
      case RELU -> 1;
      case GELU -> 2;
      case SILU -> 3;
    };
  }
}
