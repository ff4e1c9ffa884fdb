/**
 * The wire over RDMA: reliable-connected queue pairs of libibverbs, through presets of our own. It
 * exports nothing; the provider is found as a service. No other module knows of verbs.
 */
module org.mkernel.transport.rdma {
  requires org.mkernel.api;
  requires org.apache.logging.log4j;
  requires org.bytedeco.javacpp;
  requires static org.jspecify;

  uses org.mkernel.api.spi.Natives;

  provides org.mkernel.api.spi.TransportProvider with
      org.mkernel.transport.rdma.RdmaTransport;
}
