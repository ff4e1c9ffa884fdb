/**
 * The {@code mkernel} command. It reads options and files, calls the API as any embedder would, and
 * prints reports. How an operation works belongs elsewhere: the command knows operators by what
 * their providers say of themselves.
 */
module org.mkernel.cli {
  requires org.mkernel.api;
  requires org.mkernel.runtime;
  requires info.picocli;
  requires org.apache.logging.log4j.core;
  requires tools.jackson.core;
  requires static org.jspecify;

  // Options are fields that picocli sets.
  opens org.mkernel.cli to
      info.picocli;
}
