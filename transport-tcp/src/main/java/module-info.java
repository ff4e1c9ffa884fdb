/**
 * A wire over sockets, for machines without RDMA: several connections to each peer, payload
 * straight from and to memory by address. It exports nothing; it is found as a service.
 */
module org.mkernel.transport.tcp {
  requires org.mkernel.api;
  requires static org.jspecify;

  provides org.mkernel.api.spi.TransportProvider with
      org.mkernel.transport.tcp.TcpTransport;
}
