/**
 * The typed operations, which embedders name, and their planners, which are found as services. A
 * planner turns parameters into a schedule: it starts no thread, touches no device and opens no
 * connection.
 */
module org.mkernel.collectives {
  requires transitive org.mkernel.api;
  requires static org.jspecify;

  exports org.mkernel.collectives;

  provides org.mkernel.api.spi.CollectiveProvider with
      org.mkernel.collectives.AllGatherGemmProvider,
      org.mkernel.collectives.AllGatherProvider,
      org.mkernel.collectives.AllReduceProvider,
      org.mkernel.collectives.AllToAllProvider,
      org.mkernel.collectives.BroadcastProvider,
      org.mkernel.collectives.GemmAllReduceProvider,
      org.mkernel.collectives.GemmReduceScatterProvider,
      org.mkernel.collectives.ReduceScatterProvider;
}
