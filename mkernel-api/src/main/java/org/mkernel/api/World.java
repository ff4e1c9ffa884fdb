package org.mkernel.api;

import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.IntUnaryOperator;
import org.mkernel.api.schedule.Topology;

/**
 * Ranks that run operations together. After a failure it is dead: every call throws the cause;
 * close it and join anew.
 */
public interface World extends AutoCloseable {
  /**
   * Its ranks.
   *
   * @return which rank is where
   */
  Topology topology();

  /**
   * The number of ranks.
   *
   * @return at least 1
   */
  default int size() {
    return topology().size();
  }

  /**
   * The ranks of this process.
   *
   * @return in order
   */
  List<Rank> localRanks();

  /**
   * Runs something on every local rank at once, each on a platform thread of its own, and waits for
   * all. When one throws, the world is aborted, so that the others end too.
   *
   * @param body what to run
   * @throws MKernelException what a body threw first, or the cause of the world's death
   */
  void eachLocalRank(Consumer<Rank> body);

  /**
   * Makes worlds of some of the ranks, as for tensor or expert parallelism: the ranks of one group,
   * in the order of this world, are the ranks 0, 1, … of a world of their own. Collective: every
   * process calls it once, with the same groups.
   *
   * <p>A rank of the new world may use the tensors of the same rank of this one. The new world is
   * closed with this one at the latest; a failure in one is none of the other.
   *
   * @param groupOf the group of a rank of this world; below 0 for a rank that is in none
   * @return the worlds that ranks of this process are in, by group
   * @throws MKernelException when ranks do not agree or do not take part
   */
  List<World> split(IntUnaryOperator groupOf);

  /**
   * Why the world is dead.
   *
   * @return the cause, empty while it lives
   */
  Optional<MKernelException> failure();

  /**
   * Closes operations, tensors and connections. An operation in flight is aborted. Closing twice
   * does nothing.
   */
  @Override
  void close();
}
