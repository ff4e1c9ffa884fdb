/**
 * Requires every module of mkernel, so that tests see them together as an embedder does. There is
 * no code here, only tests: of rules between modules, and of what crosses them.
 */
module org.mkernel.testsuite {
  requires org.mkernel.api;
  requires org.mkernel.runtime;
  requires org.mkernel.collectives;
  requires org.mkernel.kernels.cubins;
  requires org.mkernel.kernels.cuda;
  requires org.mkernel.kernels.host;
  requires org.mkernel.natives.linux.x86_64;
  requires org.mkernel.testkit;
  requires org.mkernel.transport.rdma;
  requires org.mkernel.transport.tcp;
  requires org.mkernel.cli;
  requires static org.jspecify;
  requires jdk.management;
}
