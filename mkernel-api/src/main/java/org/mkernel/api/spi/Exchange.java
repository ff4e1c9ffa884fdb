package org.mkernel.api.spi;

import java.util.List;

/** How the ranks of a world agree outside of operations. Each rank calls in the same order. */
public interface Exchange {
  /**
   * Gives a contribution and receives everybody's.
   *
   * @param contribution this rank's bytes
   * @return all ranks' bytes, by rank
   * @throws org.mkernel.api.PeerLostException when a rank does not come within the world's join
   *     deadline; it names the missing ranks
   */
  List<byte[]> allGather(byte[] contribution);
}
