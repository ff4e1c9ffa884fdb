package org.mkernel.transport.rdma;

import org.mkernel.api.Failure;
import org.mkernel.api.MismatchException;

/**
 * Where one end of connections is.
 *
 * @param where port and adapter, for messages
 * @param ethernet whether its link is Ethernet, else InfiniBand
 * @param global whether packets to it need a global header
 * @param lid its local identifier, 0 on Ethernet
 * @param mtu bytes of a packet
 * @param gid its global identifier, 32 hexadecimal digits
 */
record RdmaAddress(String where, boolean ethernet, boolean global, int lid, int mtu, String gid) {

  /** Bytes of a packet that both ends can. */
  int pathMtu(RdmaAddress peer) {
    return Math.min(mtu, peer.mtu);
  }

  /** Refuses ends that no packet can connect. */
  void requireLinkTo(RdmaAddress peer, Failure failure) {
    if (ethernet != peer.ethernet) {
      throw new MismatchException(
          "%s is %s, %s is %s".formatted(where, link(), peer.where, peer.link()), failure);
    }
  }

  private String link() {
    return ethernet ? "Ethernet" : "InfiniBand";
  }
}
