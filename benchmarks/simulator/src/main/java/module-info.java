/** Compares the simulator with the host executor. Operators, device and natives are services. */
module org.mkernel.benchmarks.simulator {
  requires org.mkernel.collectives;
  requires org.mkernel.runtime;
}
