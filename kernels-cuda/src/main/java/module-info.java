/**
 * NVIDIA GPUs as devices: the primary context, memory, streams and launches through the driver's
 * API, kernels compiled by NVRTC and kept in a store by digest, and the interpreter that runs
 * schedules. It exports nothing; all of it is found as services. No other module knows CUDA types.
 */
module org.mkernel.kernels.cuda {
  requires org.mkernel.api;
  requires org.bytedeco.cuda;
  requires org.bytedeco.javacpp;
  requires org.apache.logging.log4j;
  requires static org.jspecify;

  uses org.mkernel.api.spi.KernelBinaries;
  uses org.mkernel.api.spi.Natives;

  provides org.mkernel.api.spi.DeviceProvider with
      org.mkernel.kernels.cuda.CudaDeviceProvider,
      org.mkernel.kernels.cuda.CublasDeviceProvider;
  provides org.mkernel.api.spi.KernelSet with
      org.mkernel.kernels.cuda.CudaKernels,
      org.mkernel.kernels.cuda.CublasKernels;
}
