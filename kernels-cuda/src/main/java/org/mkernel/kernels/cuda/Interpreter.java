package org.mkernel.kernels.cuda;

import java.util.List;
import org.mkernel.api.DType;
import org.mkernel.api.Failure;
import org.mkernel.api.UnavailableException;
import org.mkernel.api.UsageException;
import org.mkernel.api.schedule.Kernel;
import org.mkernel.api.schedule.RankSchedule;
import org.mkernel.api.schedule.Role;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.schedule.TaskKind;
import org.mkernel.api.spi.ExecutionPlan;

/** The persistent kernel, loaded for one variant. */
final class Interpreter implements AutoCloseable {
  private static final String NAME = "mkernel_interpreter";
  private static final int THREADS = 384;

  /** All that a CTA can have: one CTA fills a multiprocessor. */
  private static final int SHARED_BYTES = 232448;

  private final CudaModule module;
  private final CudaKernel kernel;

  private Interpreter(CudaModule module) {
    this.module = module;
    this.kernel = module.kernel(NAME);
    kernel.allowDynamicShared(SHARED_BYTES);
  }

  /**
   * What is fixed when the kernel is compiled.
   *
   * @param dtype type of operands and outputs
   * @param transposedB whether rows of B are columns of the product
   */
  record Variant(DType dtype, boolean transposedB) {
    /**
     * The variant that runs a schedule.
     *
     * @throws UsageException when no single one does
     */
    static Variant of(Schedule schedule) {
      DType dtype = null;
      Boolean transposed = null;
      boolean computes = false;
      for (int rank = 0; rank < schedule.topology().size(); rank++) {
        RankSchedule tasks = schedule.rank(rank);
        for (int task = 0; task < tasks.tasks(); task++) {
          if (tasks.kind(task) != TaskKind.COMPUTE && tasks.kind(task) != TaskKind.REDUCE) {
            continue;
          }
          computes = true;
          int buffer = tasks.regionBuffer(tasks.output(tasks.firstOutput(task)));
          DType of = schedule.buffers().get(buffer).dtype();
          if (dtype != null && dtype != of) {
            throw unsupported(
                schedule, "computes in %s and %s".formatted(dtype.label(), of.label()));
          }
          dtype = of;
        }
      }
      for (Kernel kernel : schedule.kernels()) {
        if (kernel.kind().equals(Kernel.GEMM)) {
          boolean of = Boolean.parseBoolean(kernel.attribute(Kernel.TRANSPOSE_B, "false"));
          if (transposed != null && transposed != of) {
            throw unsupported(schedule, "multiplies by plain and by transposed matrices");
          }
          transposed = of;
        }
      }
      if (dtype == DType.F32 && computes) {
        throw unsupported(schedule, "computes in f32");
      }
      return new Variant(
          dtype == null || dtype == DType.F32 ? DType.BF16 : dtype,
          transposed != null && transposed);
    }

    private static UsageException unsupported(Schedule schedule, String what) {
      return new UsageException(
          "%s %s; the device cuda computes in bf16 or in f16".formatted(schedule.name(), what),
          Failure.remedy("use bf16 or f16, or the device host").withOperation(schedule.name()));
    }
  }

  static Interpreter load(CudaContext context, Variant variant) {
    CubinEntry entry =
        CubinStore.ofUser().get(StockKernels.interpreter(variant.dtype(), variant.transposedB()));
    CudaModule module = CudaModule.load(context, entry.cubin());
    boolean done = false;
    try {
      Interpreter interpreter = new Interpreter(module);
      done = true;
      return interpreter;
    } finally {
      if (!done) {
        module.close();
      }
    }
  }

  /** Refuses more lanes than the GPU holds at once: those that wait would wait for ever. */
  void requireResident(int lanes, int multiprocessors, List<Role> roles, ExecutionPlan plan) {
    int most = kernel.ctasPerMultiprocessor(THREADS, SHARED_BYTES) * multiprocessors;
    if (lanes > most) {
      throw new UnavailableException(
          "%d lanes of %s do not fit: the GPU holds %d CTAs of %d threads and %d bytes at once"
              .formatted(lanes, plan.schedule().name(), most, THREADS, SHARED_BYTES),
          Failure.remedy(
                  "ask for fewer lanes: options %s"
                      .formatted(roles.stream().map(role -> "lanes." + role.name()).toList()))
              .withRank(plan.rank())
              .withOperation(plan.schedule().name()));
    }
  }

  /** Lays a launch down; its one parameter is the plan. */
  CudaLaunch launch(int lanes) {
    return new CudaLaunch(
        kernel,
        new CudaLaunch.Shape(lanes, THREADS, SHARED_BYTES, 1, false, true),
        TaskLayout.PLAN);
  }

  @Override
  public void close() {
    module.close();
  }
}
