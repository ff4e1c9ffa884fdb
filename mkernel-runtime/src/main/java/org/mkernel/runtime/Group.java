package org.mkernel.runtime;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.mkernel.api.MKernelException;
import org.mkernel.api.spi.Exchange;
import org.mkernel.api.spi.ExecutionPlan;
import org.mkernel.runtime.join.Membership;

/** What ties the ranks of a world together: in one process, or in several. */
interface Group {
  /**
   * How far a rank has come with an operation.
   *
   * @param launched the epoch of its last launch
   * @param stalls what its lanes wait for
   */
  record Progress(long launched, List<ExecutionPlan.Stall> stalls) {}

  /** How a rank of this process agrees with all others. */
  Exchange exchange(int rank);

  /** Tells whoever must hear of it that the world is dead. Returns at once. */
  void spread(MKernelException cause);

  /**
   * Asks all ranks how far they have come.
   *
   * @param operation the number of the operation
   * @return by rank; empty where it does not answer
   */
  List<Optional<Progress>> progress(int operation);

  /**
   * Meets the other ranks of a part of the world. Collective.
   *
   * @param parts the ranks of each part, ascending
   * @return the place in the part of this process; empty where no other process is in it
   */
  Optional<Membership> meetParts(List<int[]> parts);

  /** What transports need to know of the world, as options. */
  Map<String, String> options();

  /** Waits until no rank needs another one any more, or the join deadline has passed. */
  void leave();

  /** Frees what the group holds. */
  void close();
}
