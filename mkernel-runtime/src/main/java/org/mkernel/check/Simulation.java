package org.mkernel.check;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.runtime.TraceEvents;

/** What a {@link Simulator} predicts. Times are nanoseconds from the first launch. */
public final class Simulation {
  /**
   * A task that cannot go on, because nothing that is left to happen raises its signal.
   *
   * @param rank its rank
   * @param task its number on the rank
   * @param signal what it waits for, of its rank
   * @param wanted the value that it waits for
   * @param seen the value that the signal has
   * @param epoch its epoch
   */
  public record Blocked(int rank, int task, int signal, long wanted, long seen, long epoch) {}

  /**
   * What the lanes of a role did, over all ranks and epochs.
   *
   * @param name the role
   * @param lanes of all ranks
   * @param workNanos what they worked, as far as they had processors of their own
   * @param waitNanos what they waited at the head of tasks that they had claimed
   * @param mostNanos the work of a lane on the rank that works most, were it shared evenly
   */
  public record RoleUse(
      String name, long lanes, double workNanos, double waitNanos, double mostNanos) {
    RoleUse plus(RoleUse other) {
      return new RoleUse(
          name,
          lanes + other.lanes,
          workNanos + other.workNanos,
          waitNanos + other.waitNanos,
          Math.max(mostNanos, other.mostNanos));
    }
  }

  /**
   * What takes one thing after another, and how long the busiest of its kind was busy in all
   * epochs.
   *
   * @param name as {@code wire, sending}
   * @param busyNanos how long
   * @param share of the time of all epochs, 0 to 1
   */
  public record LinkUse(String name, double busyNanos, double share) {}

  /**
   * A time that no order of tasks can beat.
   *
   * @param nanos of one launch
   * @param reason whose work it is
   */
  public record Bound(double nanos, String reason) {}

  /** Sums of a run. */
  record Totals(
      List<RoleUse> roles,
      double mostSent,
      double mostReceived,
      double mostMapped,
      double mostProxy,
      double processors) {}

  /** Receives tasks as they ran. */
  @FunctionalInterface
  public interface TaskVisitor {
    /**
     * Takes a task.
     *
     * @param rank its rank
     * @param lane its lane, of all lanes of the rank
     * @param task its number on the rank
     * @param epoch its epoch
     * @param claimedNanos when a lane claimed it
     * @param readyNanos when its waits were met
     * @param doneNanos when it had raised its signals
     */
    void visit(
        int rank,
        int lane,
        int task,
        long epoch,
        double claimedNanos,
        double readyNanos,
        double doneNanos);
  }

  private final Schedule schedule;
  private final Machine machine;
  private final int epochs;
  private final Timeline timeline;
  private final double[][] ended;
  private final int[][] endRecord;
  private final List<Blocked> blocked;
  private final Totals totals;
  private final int[] taskBase;

  Simulation(
      Schedule schedule,
      Machine machine,
      int epochs,
      Timeline timeline,
      double[][] ended,
      int[][] endRecord,
      List<Blocked> blocked,
      Totals totals,
      int[] taskBase) {
    this.schedule = schedule;
    this.machine = machine;
    this.epochs = epochs;
    this.timeline = timeline;
    this.ended = ended;
    this.endRecord = endRecord;
    this.blocked = List.copyOf(blocked);
    this.totals = totals;
    this.taskBase = taskBase;
  }

  /**
   * The schedule.
   *
   * @return as given
   */
  public Schedule schedule() {
    return schedule;
  }

  /**
   * The machine.
   *
   * @return as given
   */
  public Machine machine() {
    return machine;
  }

  /**
   * How many launches were simulated.
   *
   * @return at least 1
   */
  public int epochs() {
    return epochs;
  }

  /**
   * Whether every epoch came to its end.
   *
   * @return false when tasks are {@link #blocked}
   */
  public boolean isComplete() {
    return Double.isFinite(endNanos(epochs));
  }

  /**
   * The tasks that cannot go on.
   *
   * @return by rank; empty when the simulation is complete
   */
  public List<Blocked> blocked() {
    return blocked;
  }

  /**
   * A blocked task in words.
   *
   * @param one of {@link #blocked}
   * @return as {@code rank 0 gemm[3] (compute) waits in epoch 1 for arrived[2] ≥ 1, which is 0}
   */
  public String describe(Blocked one) {
    return "%s waits in epoch %d for %s ≥ %d, which is %d"
        .formatted(
            schedule.describe(one.rank(), one.task()),
            one.epoch(),
            schedule.signalName(one.signal()),
            one.wanted(),
            one.seen());
  }

  /**
   * When the last rank ended an epoch.
   *
   * @param epoch from 1
   * @return nanoseconds; infinite when it cannot end
   */
  public double endNanos(int epoch) {
    double last = 0;
    for (double end : ended[epoch - 1]) {
      last = Math.max(last, end);
    }
    return last;
  }

  /**
   * The first launch: from its start to the end of its last rank.
   *
   * @return nanoseconds; infinite when it cannot end
   */
  public double firstNanos() {
    return endNanos(1);
  }

  /**
   * A launch among others back to back: the mean from the end of the first to the end of the last.
   *
   * @return nanoseconds; of a single launch, {@link #firstNanos}
   */
  public double steadyNanos() {
    return epochs == 1 ? firstNanos() : (endNanos(epochs) - endNanos(1)) / (epochs - 1);
  }

  /**
   * The roles.
   *
   * @return by name
   */
  public List<RoleUse> roles() {
    return totals.roles();
  }

  /**
   * Links, adapters, proxies and processors that were in use.
   *
   * @return the busiest of each kind
   */
  public List<LinkUse> links() {
    List<LinkUse> all = new ArrayList<>();
    addLink(all, "wire, sending", totals.mostSent());
    addLink(all, "wire, receiving", totals.mostReceived());
    addLink(all, "mapped link", totals.mostMapped());
    addLink(all, "proxy", totals.mostProxy());
    addLink(all, "processors", totals.processors());
    return all;
  }

  private void addLink(List<LinkUse> all, String name, double busy) {
    if (busy > 0) {
      all.add(new LinkUse(name, busy, busy / endNanos(epochs)));
    }
  }

  /**
   * The busiest lane, link or proxy, were it never idle.
   *
   * @return its time for one launch
   */
  public Bound bound() {
    double most = 0;
    String reason = "nothing";
    for (RoleUse role : roles()) {
      if (role.mostNanos() > most) {
        most = role.mostNanos();
        reason = "lanes of role " + role.name();
      }
    }
    for (LinkUse link : links()) {
      if (link.busyNanos() > most) {
        most = link.busyNanos();
        reason = link.name();
      }
    }
    return new Bound(most / epochs, reason);
  }

  /**
   * What the end of an epoch waited for, from the task that started it to the one that ended last.
   * A step that comes from an earlier epoch is the first.
   *
   * @param epoch from 1
   * @return tasks in order; empty when the epoch did not end or has no tasks
   */
  public List<PathStep> criticalPath(int epoch) {
    int lastRank = 0;
    double[] ends = ended[epoch - 1];
    for (int rank = 1; rank < ends.length; rank++) {
      lastRank = ends[rank] > ends[lastRank] ? rank : lastRank;
    }
    List<PathStep> path = new ArrayList<>();
    if (!Double.isFinite(ends[lastRank])) {
      return path;
    }
    int tasks = taskBase[taskBase.length - 1];
    double to = ends[lastRank];
    int record = endRecord[epoch - 1][lastRank];
    while (record != Timeline.NONE) {
      int ahead = timeline.behind[record];
      // Bytes of who came later may be in the way too; going back in time keeps the path finite.
      boolean link = ahead != Timeline.NONE && timeline.done[ahead] < timeline.done[record];
      int before = link ? ahead : timeline.cause[record];
      PathStep.Reason reason =
          link ? PathStep.Reason.LINK : PathStep.REASONS[timeline.reason[record]];
      double from = link ? Math.min(to, timeline.arrived[before]) : timeline.ready[record];
      int rank = rankOf(record % tasks);
      long own = record / tasks + 1L;
      path.add(new PathStep(own, rank, record % tasks - taskBase[rank], from, to, reason));
      if (own < epoch || reason == PathStep.Reason.LAUNCH) {
        break;
      }
      to = from;
      record = before;
    }
    Collections.reverse(path);
    return path;
  }

  /**
   * Visits all tasks that ran to their end.
   *
   * @param visitor receives them by epoch, rank and number
   */
  public void forEachTask(TaskVisitor visitor) {
    int tasks = taskBase[taskBase.length - 1];
    for (int epoch = 1; epoch <= epochs; epoch++) {
      for (int rank = 0; rank + 1 < taskBase.length; rank++) {
        for (int task = taskBase[rank]; task < taskBase[rank + 1]; task++) {
          int record = (epoch - 1) * tasks + task;
          if (!Double.isNaN(timeline.done[record])) {
            visitor.visit(
                rank,
                timeline.lane[record],
                task - taskBase[rank],
                epoch,
                timeline.claimed[record],
                timeline.ready[record],
                timeline.done[record]);
          }
        }
      }
    }
  }

  /**
   * Writes the timeline as Chrome trace events, which Perfetto reads: a process per rank, a row per
   * lane.
   *
   * @param file where to
   * @throws org.mkernel.api.UnavailableException when the file can't be written
   */
  public void writeTrace(Path file) {
    TraceEvents.write(
        file,
        schedule.topology(),
        events -> {
          try {
            forEachTask((rank, lane, task, epoch, claimed, ready, done) -> {
              try {
                events.task(
                    schedule, rank, lane, task, epoch, claimed / 1e3, ready / 1e3, done / 1e3);
              } catch (IOException e) {
                throw new UncheckedIOException(e);
              }
            });
          } catch (UncheckedIOException e) {
            throw e.getCause();
          }
        });
  }

  private int rankOf(int task) {
    int rank = Arrays.binarySearch(taskBase, task);
    if (rank < 0) {
      return -rank - 2;
    }
    while (taskBase[rank + 1] == task) {
      rank++;
    }
    return rank;
  }
}
