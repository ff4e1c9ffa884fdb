/**
 * The host as a device: memory, lanes as threads, tiles computed by OpenBLAS, and the transport
 * through shared memory. It exports nothing; all of it is found as services.
 */
module org.mkernel.kernels.host {
  requires org.mkernel.api;
  requires org.bytedeco.javacpp;
  requires org.bytedeco.openblas;
  requires static org.jspecify;

  uses org.mkernel.api.spi.Natives;

  provides org.mkernel.api.spi.DeviceProvider with
      org.mkernel.kernels.host.HostDeviceProvider;
  provides org.mkernel.api.spi.KernelSet with
      org.mkernel.kernels.host.HostKernels;
  provides org.mkernel.api.spi.TransportProvider with
      org.mkernel.kernels.host.SharedMemoryTransport;
}
