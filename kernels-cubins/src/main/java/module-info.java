/**
 * Machine code of the stock kernels for NVIDIA GPUs, compiled when mkernel is built: where it fits,
 * no compiler is needed. Entries are resources, named by digest; the one class hands them out. It
 * knows nothing of what is in them.
 */
module org.mkernel.kernels.cubins {
  requires org.mkernel.api;
  requires static org.jspecify;

  provides org.mkernel.api.spi.KernelBinaries with
      org.mkernel.kernels.cubins.StockCubins;
}
