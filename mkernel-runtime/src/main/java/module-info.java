/**
 * The runtime: joins the ranks of a world, loads plug-ins in layers of their own, chooses
 * transports, prepares and launches operations, and moves commands from the FIFO of a rank to a
 * wire. It knows plug-ins by the interfaces of the API only, and it exports nothing but the checker
 * and the simulator, and to the command what a launcher said.
 */
module org.mkernel.runtime {
  requires transitive org.mkernel.api;
  requires org.apache.logging.log4j;
  requires static org.jspecify;

  exports org.mkernel.check;
  exports org.mkernel.runtime.join to
      org.mkernel.cli;

  uses org.mkernel.api.spi.CollectiveProvider;
  uses org.mkernel.api.spi.DeviceProvider;
  uses org.mkernel.api.spi.KernelSet;
  uses org.mkernel.api.spi.TransportProvider;

  provides org.mkernel.api.spi.RuntimeProvider with
      org.mkernel.runtime.MKernelRuntime;
  provides org.mkernel.api.spi.TransportProvider with
      org.mkernel.runtime.EmulatedWireProvider;
}
