package org.mkernel.api.spi;

/** A transport as one rank uses it: mapped memory, or a wire. */
public sealed interface Port extends AutoCloseable permits MappedPort, Wire {
  @Override
  void close();
}
