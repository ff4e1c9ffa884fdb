package org.mkernel.transport.tcp;

/**
 * How the bytes of a transfer are spread over the connections to a peer: short ones go by one, long
 * ones by all. Both sides cut alike.
 */
final class Pieces {
  /** Less than this is not worth a connection of its own. */
  private static final long LEAST = 128 << 10;

  private Pieces() {}

  static int count(long bytes, int streams) {
    return Math.clamp(bytes / LEAST, 1, streams);
  }

  static long start(long bytes, int pieces, int piece) {
    return Math.multiplyExact(bytes / pieces, piece) + Math.min(piece, bytes % pieces);
  }
}
