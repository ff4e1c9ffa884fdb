/**
 * The typed operations, which embedders name, and their planners, which are found as services. A
 * planner turns parameters into a schedule: it starts no thread, touches no device and opens no
 * connection.
 */
module org.mkernel.collectives {
  requires transitive org.mkernel.api;
  requires org.apache.logging.log4j;
  requires static org.jspecify;
}
