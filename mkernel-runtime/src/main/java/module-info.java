/**
 * The runtime: joins the ranks of a world, loads plug-ins in layers of their own, chooses
 * transports, prepares and launches operations, and moves commands from the FIFO of a rank to a
 * wire. It knows plug-ins by the interfaces of the API only, and it exports nothing but the
 * checker.
 */
module org.mkernel.runtime {
  requires transitive org.mkernel.api;
  requires org.apache.logging.log4j;
  requires static org.jspecify;
}
