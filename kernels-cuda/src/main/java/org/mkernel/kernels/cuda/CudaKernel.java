package org.mkernel.kernels.cuda;

import org.bytedeco.cuda.cudart.CUfunc_st;
import org.bytedeco.cuda.global.cudart;

/** A kernel of a loaded module. It lives as long as the module. */
final class CudaKernel {
  private final CudaContext context;
  private final String name;
  private final CUfunc_st function;

  CudaKernel(CudaContext context, String name, CUfunc_st function) {
    this.context = context;
    this.name = name;
    this.function = function;
  }

  CudaContext context() {
    return context;
  }

  String name() {
    return name;
  }

  CUfunc_st function() {
    return function;
  }

  /** Registers of a thread at launch. */
  int registers() {
    return attribute(cudart.CU_FUNC_ATTRIBUTE_NUM_REGS);
  }

  /** Bytes of local memory of a thread: stack and spills. */
  int localBytes() {
    return attribute(cudart.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
  }

  /** Bytes of shared memory that the source declares. */
  int staticSharedBytes() {
    return attribute(cudart.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  }

  /** The most threads of a CTA. */
  int maxThreads() {
    return attribute(cudart.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  }

  private int attribute(int attribute) {
    int[] value = new int[1];
    try (CudaContext.Scope _ = context.enter()) {
      Driver.check(
          cudart.cuFuncGetAttribute(value, attribute, function), "cuFuncGetAttribute of " + name);
    }
    return value[0];
  }

  /** Lets launches ask for up to so many bytes of dynamic shared memory. */
  void allowDynamicShared(int bytes) {
    try (CudaContext.Scope _ = context.enter()) {
      Driver.check(
          cudart.cuFuncSetAttribute(
              function, cudart.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes),
          "cuFuncSetAttribute of %s to %d bytes of shared memory".formatted(name, bytes));
    }
  }

  /** CTAs that one multiprocessor holds at once. */
  int ctasPerMultiprocessor(int threads, int dynamicSharedBytes) {
    int[] ctas = new int[1];
    try (CudaContext.Scope _ = context.enter()) {
      Driver.check(
          cudart.cuOccupancyMaxActiveBlocksPerMultiprocessor(
              ctas, function, threads, dynamicSharedBytes),
          "cuOccupancyMaxActiveBlocksPerMultiprocessor of " + name);
    }
    return ctas[0];
  }
}
