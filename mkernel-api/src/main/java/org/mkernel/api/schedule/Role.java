package org.mkernel.api.schedule;

/**
 * The pools that a lane drains, in order. Every lane of a role claims tasks from the same pools.
 *
 * @param name its name, unique on the rank
 * @param compute whether its tasks compute: lanes of such a role get a processor, others mostly
 *     wait
 * @param readyFirst whether a lane claims the head of any of its pools whose waits are met, instead
 *     of waiting at the head of the first pool that is not drained
 * @param pools numbers of pools, in the order in which they are drained
 */
public record Role(String name, boolean compute, boolean readyFirst, int[] pools) {
  /** Copies the pools. */
  public Role {
    pools = pools.clone();
  }

  /**
   * The pools.
   *
   * @return a copy
   */
  @Override
  public int[] pools() {
    return pools.clone();
  }
}
