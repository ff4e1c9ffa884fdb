package org.mkernel.transport.rdma;

import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import org.mkernel.api.Failure;
import org.mkernel.api.UnavailableException;
import org.mkernel.api.UsageException;

/** Chooses the identifier that an Ethernet port is reached by. */
final class GidChoice {
  private GidChoice() {}

  /** The one that is routable with RoCE v2; IPv4 before IPv6, then the first of the table. */
  static Optional<Gid> automatic(List<Gid> table) {
    return table.stream()
        .filter(gid -> gid.isSet() && gid.isRoceV2() && !gid.isLinkLocal())
        .min(Comparator.comparing((Gid gid) -> !gid.isIpv4()).thenComparingInt(Gid::index));
  }

  /**
   * The one asked for, else the best one.
   *
   * @param where adapter and port, for messages
   * @param table the port's table
   * @param index an index of it, or -1 to choose
   * @param option the option that sets the index, for messages
   */
  static Gid choose(String where, List<Gid> table, int index, String option) {
    List<Gid> set = table.stream().filter(Gid::isSet).toList();
    if (index >= 0) {
      return set.stream()
          .filter(gid -> gid.index() == index)
          .findFirst()
          .orElseThrow(() ->
              new UsageException(
                  "option %s is %d, an empty entry of %s; it has %s"
                      .formatted(option, index, where, set)));
    }
    return automatic(set)
        .orElseThrow(() ->
            new UnavailableException(
                "%s has no usable GID: none is RoCE v2 and routable among %s".formatted(where, set),
                Failure.remedy(
                    "give its network interface an IPv4 or a global IPv6 address, or set "
                        + option)));
  }
}
