/** A transport of a third party. It exports nothing: the runtime finds the provider. */
module org.example.loopback {
  requires org.mkernel.api;

  provides org.mkernel.api.spi.TransportProvider with
      org.example.loopback.LoopbackTransport;
}
