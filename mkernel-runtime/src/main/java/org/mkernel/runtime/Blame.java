package org.mkernel.runtime;

import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.mkernel.api.Failure;
import org.mkernel.api.MKernelException;
import org.mkernel.api.PeerLostException;
import org.mkernel.api.schedule.RankSchedule;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.spi.ExecutionPlan.Stall;

/**
 * Finds out whose fault an expired wait is: from the signal to the task that raises it, from that
 * task's rank to what it waits for in turn, until a rank waits for no one.
 */
final class Blame {
  private final Schedule schedule;
  private final List<Optional<Group.Progress>> progress;
  private final double seconds;

  Blame(Schedule schedule, List<Optional<Group.Progress>> progress, long waitNanos) {
    this.schedule = schedule;
    this.progress = progress;
    this.seconds = waitNanos / 1e9;
  }

  MKernelException of(Stall first) {
    StringBuilder text =
        new StringBuilder(
            "%s, epoch %d: %s waited %.3g s for %s to reach %d, saw %d"
                .formatted(
                    schedule.name(),
                    first.epoch(),
                    schedule.describe(first.rank(), first.task()),
                    seconds,
                    schedule.signalName(first.signal()),
                    first.wanted(),
                    first.seen()));
    Set<Stall> visited = new HashSet<>();
    Stall stall = first;
    int blamed = first.rank();
    while (true) {
      visited.add(stall);
      Raiser raiser = raiser(stall.rank(), stall.signal());
      if (raiser == null) {
        text.append("; no task raises it");
        break;
      }
      blamed = raiser.rank();
      text.append("; it is raised by ").append(schedule.describe(raiser.rank(), raiser.task()));
      Optional<Group.Progress> there = progress.get(raiser.rank());
      if (there.isEmpty()) {
        text.append(", but rank %d does not answer".formatted(raiser.rank()));
        break;
      }
      boolean behind = there.get().launched() < stall.epoch();
      // Ranks may be visited again, for another of their tasks: many wait for themselves.
      Optional<Stall> next =
          there.get().stalls().stream()
              // Whatever holds up an epoch holds up all of the next one.
              .filter(s -> (behind || blocks(s, raiser.task())) && !visited.contains(s))
              .findFirst();
      if (behind) {
        text.append(
            ", but rank %d has launched only epoch %d"
                .formatted(raiser.rank(), there.get().launched()));
      }
      if (next.isEmpty() && behind) {
        break;
      }
      if (next.isEmpty()) {
        text.append(
            schedule.topology().sameNode(raiser.rank(), stall.rank())
                ? ", but rank %d does not get it done".formatted(raiser.rank())
                : ", but nothing arrives from rank %d: it or the link from it to rank %d is lost"
                    .formatted(raiser.rank(), stall.rank()));
        break;
      }
      stall = next.get();
      text.append(
          ", which waits for %s to reach %d, sees %d"
              .formatted(schedule.signalName(stall.signal()), stall.wanted(), stall.seen()));
    }
    return new PeerLostException(
        text.toString(),
        Failure.remedy(
                "look at rank %d; if it is only slow, raise the option deadline".formatted(blamed))
            .withRank(first.rank())
            .withPeer(blamed)
            .withOperation(schedule.name())
            .withTask(schedule.describe(first.rank(), first.task())));
  }

  /** Whether a lane that is stalled at a task keeps another task of its rank from running. */
  private boolean blocks(Stall stall, int task) {
    RankSchedule rank = schedule.rank(stall.rank());
    if (stall.task() == task) {
      return true;
    }
    int stalledPool = rank.poolOf(stall.task());
    int pool = rank.poolOf(task);
    return rank.roles().stream()
        .anyMatch(role -> {
          List<Integer> pools = Arrays.stream(role.pools()).boxed().toList();
          if (stalledPool == pool) {
            return pools.contains(pool) && stall.task() < task;
          }
          // What claims the ready first goes on with other pools.
          return !role.readyFirst()
              && pools.contains(stalledPool)
              && pools.indexOf(stalledPool) < pools.indexOf(pool);
        });
  }

  private record Raiser(int rank, int task) {}

  private @org.jspecify.annotations.Nullable Raiser raiser(int owner, int signal) {
    for (int rank = 0; rank < schedule.topology().size(); rank++) {
      RankSchedule r = schedule.rank(rank);
      for (int task = 0; task < r.tasks(); task++) {
        for (int raise = r.firstRaise(task); raise < r.firstRaise(task + 1); raise++) {
          if (r.raiseRank(raise) == owner && r.raiseSignal(raise) == signal) {
            return new Raiser(rank, task);
          }
        }
      }
    }
    return null;
  }
}
