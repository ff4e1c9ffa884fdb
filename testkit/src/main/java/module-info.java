/**
 * Test suites for third parties: whoever writes a transport, a collective or a kernel set extends
 * one and states what is theirs. The providers of mkernel itself pass the same suites.
 */
module org.mkernel.testkit {
  requires transitive org.mkernel.api;
  requires org.mkernel.runtime;
  requires transitive org.junit.jupiter.api;
  requires transitive org.junit.jupiter.params;
  requires static org.jspecify;

  exports org.mkernel.testkit;
}
