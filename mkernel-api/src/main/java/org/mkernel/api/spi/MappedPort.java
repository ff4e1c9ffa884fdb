package org.mkernel.api.spi;

/** A port through which peers are load and store addresses. */
public non-sealed interface MappedPort extends Port {
  /**
   * Makes memory of this rank reachable for peers.
   *
   * @param address its start
   * @param bytes its size
   * @return a handle to send to peers; empty when they can't map this memory
   */
  byte[] export(long address, long bytes);

  /**
   * Maps memory of a peer.
   *
   * @param peer the rank that exported it
   * @param handle what it sent
   * @return an address, valid here until it is unmapped or the port is closed
   */
  long map(int peer, byte[] handle);

  /**
   * Ends a mapping, once for each {@link #map}; nobody here uses it any more.
   *
   * @param address what {@code map} returned
   */
  default void unmap(long address) {}
}
