package org.mkernel.kernels.cuda;

import java.util.concurrent.atomic.AtomicBoolean;
import org.bytedeco.cuda.cudart.CUfunc_st;
import org.bytedeco.cuda.cudart.CUmod_st;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.BytePointer;

/** A loaded cubin. */
final class CudaModule implements AutoCloseable {
  private final CudaContext context;
  private final CUmod_st module;
  private final AtomicBoolean closed = new AtomicBoolean();

  private CudaModule(CudaContext context, CUmod_st module) {
    this.context = context;
    this.module = module;
  }

  /**
   * Loads a cubin.
   *
   * @throws org.mkernel.api.DeviceException when it is none, or for another architecture
   */
  static CudaModule load(CudaContext context, byte[] cubin) {
    CUmod_st module = new CUmod_st();
    try (CudaContext.Scope _ = context.enter();
        BytePointer image = new BytePointer(cubin)) {
      Driver.check(cudart.cuModuleLoadData(module, image), "cuModuleLoadData");
    }
    return new CudaModule(context, module);
  }

  CudaContext context() {
    return context;
  }

  /**
   * A kernel, loaded at once: a lazy load would wait for a kernel that spins on the GPU.
   *
   * @param name as the source exports it ({@code extern "C"})
   */
  CudaKernel kernel(String name) {
    CUfunc_st function = new CUfunc_st();
    try (CudaContext.Scope _ = context.enter()) {
      Driver.check(
          cudart.cuModuleGetFunction(function, module, name), "cuModuleGetFunction of " + name);
      Driver.check(cudart.cuFuncLoad(function), "cuFuncLoad of " + name);
    }
    return new CudaKernel(context, name, function);
  }

  @Override
  public void close() {
    if (closed.compareAndSet(false, true)) {
      try (CudaContext.Scope _ = context.enter()) {
        Driver.check(cudart.cuModuleUnload(module), "cuModuleUnload");
      }
    }
  }
}
