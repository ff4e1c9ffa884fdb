package org.mkernel.check;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.mkernel.api.UsageException;
import org.mkernel.api.schedule.RankSchedule;
import org.mkernel.api.schedule.Role;
import org.mkernel.api.schedule.Schedule;
import org.mkernel.api.schedule.SignalSpec;
import org.mkernel.api.schedule.TaskKind;
import org.mkernel.api.schedule.Topology;

/**
 * Predicts how long a schedule takes on a {@link Machine}, by discrete events: lanes claim, wait,
 * work and raise as an executor's do; proxies and links serve one transfer after another. The same
 * schedule and machine give the same result. Epochs follow each other on each rank as soon as it
 * has ended the one before.
 *
 * <p>Time is that of O(n log n) events, a few for each task; memory is that of columns, about 50
 * bytes for each task and epoch.
 */
public final class Simulator {
  private static final long MAX_RECORDS = 1L << 26;

  private static final int KIND_SHIFT = 56;
  private static final long VALUE_MASK = (1L << KIND_SHIFT) - 1;
  private static final int VERSION_BITS = 32;

  private static final long LAUNCH = 0;
  private static final long WAKE = 1;
  private static final long WORKED = 2;
  private static final long PROCESSORS = 3;
  private static final long RAISE = 4;
  private static final long COMMAND = 5;
  private static final long ARRIVE = 6;
  private static final long COMPLETE = 7;
  private static final long PROXY_WAKE = 8;
  private static final long PROXY_WORKED = 9;

  private final Schedule schedule;
  private final Machine machine;
  private final Topology topology;
  private final int epochs;
  private final int ranks;
  private final int tasks;
  private final int[] taskBase;
  private final int[] raiseBase;
  private final int[] poolBase;
  private final int[] laneBase;
  private final int[] roleBase;
  private final double[] work;
  private final int[] taskOfRaise;
  private final boolean[] counter;
  private final Timeline timeline;
  private final EventQueue events = new EventQueue();

  // Signals, by rank · signals + signal.
  private final int[] value;
  private final int[] raiser;

  // Ranks.
  private final int[] epoch;
  private final int[] lanesLeft;
  private final int[] transfersLeft;
  private final int[] transfers;
  private final int[] lastRecord;
  private final double[][] ended;
  private final int[][] endRecord;

  // Roles of all ranks.
  private final int[][] poolsOfRole;
  private final boolean[] readyFirst;
  private final double[] roleBusy;
  private final double[] roleWaited;

  // By poolBase + pool: the next task to claim, of the rank.
  private final int[] head;

  // Lanes of all ranks.
  private final int[] laneRank;
  private final int[] laneRole;
  private final int[] lanePool;
  private final int[] laneTask;
  private final int[] lanePart;
  private final int[] laneWait;
  private final int[] laneSignal;
  private final long[] laneWanted;
  private final double[] laneSince;
  private final double[] laneWorked;
  private final double[] laneHeldUntil;
  private final int[] laneBefore;
  private final boolean[] laneIdle;

  // Processes.
  private final int[] processOf;
  private final Processors[] processors;
  private final int[] version;
  private final ProxyLine[] proxies;

  private final Links links;
  private double now;

  /**
   * Prepares a simulation.
   *
   * @param schedule what to run; {@link ScheduleChecker} should have proven it
   * @param machine on what
   * @param epochs how many launches back to back, at least 1
   * @throws UsageException when the machine lacks a rate, or tasks and epochs are too many
   */
  public Simulator(Schedule schedule, Machine machine, int epochs) {
    this.schedule = schedule;
    this.machine = machine;
    this.topology = schedule.topology();
    this.epochs = epochs;
    this.ranks = topology.size();
    if (epochs < 1 || schedule.tasks() * epochs > MAX_RECORDS) {
      throw new UsageException(
          "%d epochs of %d tasks; at least 1 epoch and at most %d tasks in all can be simulated"
              .formatted(epochs, schedule.tasks(), MAX_RECORDS));
    }
    taskBase = new int[ranks + 1];
    raiseBase = new int[ranks + 1];
    poolBase = new int[ranks + 1];
    laneBase = new int[ranks + 1];
    roleBase = new int[ranks + 1];
    for (int rank = 0; rank < ranks; rank++) {
      RankSchedule r = schedule.rank(rank);
      taskBase[rank + 1] = taskBase[rank] + r.tasks();
      raiseBase[rank + 1] = raiseBase[rank] + r.firstRaise(r.tasks());
      poolBase[rank + 1] = poolBase[rank] + r.pools();
      roleBase[rank + 1] = roleBase[rank] + r.roles().size();
      laneBase[rank + 1] = laneBase[rank];
      for (Role role : r.roles()) {
        laneBase[rank + 1] += machine.lanes().of(role);
      }
    }
    tasks = taskBase[ranks];
    timeline = new Timeline(tasks * epochs);
    counter = new boolean[schedule.signalCount()];
    for (SignalSpec spec : schedule.signals()) {
      Arrays.fill(
          counter,
          spec.first(),
          spec.first() + spec.count(),
          spec.kind() == SignalSpec.Kind.COUNTER);
    }
    value = new int[Math.multiplyExact(ranks, schedule.signalCount())];
    raiser = new int[value.length];
    Arrays.fill(raiser, Timeline.NONE);
    epoch = new int[ranks];
    lanesLeft = new int[ranks];
    transfersLeft = new int[ranks];
    transfers = new int[ranks];
    lastRecord = new int[ranks];
    Arrays.fill(lastRecord, Timeline.NONE);
    ended = new double[epochs][ranks];
    endRecord = new int[epochs][ranks];
    for (double[] times : ended) {
      Arrays.fill(times, Double.POSITIVE_INFINITY);
    }
    head = new int[poolBase[ranks]];
    int roles = roleBase[ranks];
    poolsOfRole = new int[roles][];
    readyFirst = new boolean[roles];
    roleBusy = new double[roles];
    roleWaited = new double[roles];
    int lanes = laneBase[ranks];
    laneRank = new int[lanes];
    laneRole = new int[lanes];
    lanePool = new int[lanes];
    laneTask = new int[lanes];
    lanePart = new int[lanes];
    laneWait = new int[lanes];
    laneSignal = new int[lanes];
    laneWanted = new long[lanes];
    laneSince = new double[lanes];
    laneWorked = new double[lanes];
    laneHeldUntil = new double[lanes];
    laneBefore = new int[lanes];
    laneIdle = new boolean[lanes];
    Arrays.fill(laneTask, -1);
    Arrays.fill(laneSignal, -1);
    processOf = new int[ranks];
    work = new double[tasks];
    taskOfRaise = new int[raiseBase[ranks]];
    links = new Links(ranks, machine);
    TaskCosts costs = new TaskCosts(schedule, machine);
    for (int rank = 0; rank < ranks; rank++) {
      prepare(rank, costs);
    }
    int processes = Arrays.stream(processOf).max().orElse(0) + 1;
    processors = Processors.of(processes, machine.host());
    version = new int[processes];
    proxies = new ProxyLine[processes];
    Arrays.setAll(proxies, p -> new ProxyLine());
  }

  private void prepare(int rank, TaskCosts costs) {
    RankSchedule r = schedule.rank(rank);
    processOf[rank] =
        switch (machine.host().sharing()) {
          case RANK -> rank;
          case NODE -> topology.node(rank);
          case WORLD -> 0;
        };
    int lane = laneBase[rank];
    for (int i = 0; i < r.roles().size(); i++) {
      Role role = r.roles().get(i);
      poolsOfRole[roleBase[rank] + i] = role.pools();
      readyFirst[roleBase[rank] + i] = role.readyFirst();
      for (int n = machine.lanes().of(role); n > 0; n--) {
        laneRank[lane] = rank;
        laneRole[lane++] = roleBase[rank] + i;
      }
    }
    for (int task = 0; task < r.tasks(); task++) {
      work[taskBase[rank] + task] = isWired(r, task) ? machine.taskNanos() : costs.nanos(r, task);
      for (int raise = r.firstRaise(task); raise < r.firstRaise(task + 1); raise++) {
        taskOfRaise[raiseBase[rank] + raise] = task;
        if (!topology.sameNode(rank, r.raiseRank(raise))) {
          transfers[rank]++;
        }
      }
    }
  }

  private boolean isWired(RankSchedule r, int task) {
    return r.kind(task) == TaskKind.PUT
        && !topology.sameNode(r.rank(), r.raiseRank(r.firstRaise(task)));
  }

  /**
   * Simulates.
   *
   * @param schedule what to run
   * @param machine on what
   * @param epochs how many launches back to back
   * @return what happened
   * @throws UsageException as the constructor
   */
  public static Simulation simulate(Schedule schedule, Machine machine, int epochs) {
    return new Simulator(schedule, machine, epochs).run();
  }

  /**
   * Runs, once.
   *
   * @return what happened; a schedule that cannot go on is told there
   */
  public Simulation run() {
    for (int rank = 0; rank < ranks; rank++) {
      launch(rank);
    }
    while (!events.isEmpty()) {
      now = events.firstTime();
      long event = events.firstEvent();
      events.removeFirst();
      handle(event >>> KIND_SHIFT, event & VALUE_MASK);
    }
    return new Simulation(
        schedule, machine, epochs, timeline, ended, endRecord, blocked(), usage(), taskBase);
  }

  private void handle(long kind, long what) {
    if (kind == LAUNCH) {
      launch((int) what);
    } else if (kind == WAKE) {
      meetWaits((int) what);
    } else if (kind == WORKED) {
      worked((int) what);
    } else if (kind == PROCESSORS) {
      processorsDue((int) (what >>> VERSION_BITS), (int) what);
    } else if (kind == RAISE) {
      raise(what);
    } else if (kind == COMMAND) {
      offer(rankOfRaise(raiseOf(what)), what, false);
    } else if (kind == ARRIVE) {
      arrived(what);
    } else if (kind == COMPLETE) {
      complete(what);
    } else if (kind == PROXY_WAKE) {
      nextOfProxy((int) what);
    } else {
      proxyWorked((int) what);
    }
  }

  private void add(double when, long kind, long what) {
    events.add(when, kind << KIND_SHIFT | what);
  }

  // ---- Ranks

  private void launch(int rank) {
    RankSchedule r = schedule.rank(rank);
    epoch[rank]++;
    for (int pool = 0; pool < r.pools(); pool++) {
      head[poolBase[rank] + pool] = r.poolFirst(pool);
    }
    int lanes = laneBase[rank + 1] - laneBase[rank];
    lanesLeft[rank] = lanes;
    transfersLeft[rank] = transfers[rank];
    for (int lane = laneBase[rank]; lane < laneBase[rank + 1]; lane++) {
      lanePool[lane] = 0;
      laneBefore[lane] = Timeline.NONE;
      laneIdle[lane] = false;
    }
    for (int lane = laneBase[rank]; lane < laneBase[rank + 1]; lane++) {
      advance(lane);
    }
    if (lanes == 0) {
      endIfDone(rank);
    }
  }

  private void endIfDone(int rank) {
    if (lanesLeft[rank] > 0 || transfersLeft[rank] > 0) {
      return;
    }
    ended[epoch[rank] - 1][rank] = now;
    endRecord[epoch[rank] - 1][rank] = lastRecord[rank];
    if (epoch[rank] < epochs) {
      add(now + machine.launchNanos(), LAUNCH, rank);
    }
  }

  // ---- Lanes

  /** A lane is free: it claims what is next. */
  private void advance(int lane) {
    int role = laneRole[lane];
    if (readyFirst[role]) {
      advanceReadyFirst(lane);
      return;
    }
    RankSchedule r = schedule.rank(laneRank[lane]);
    int[] pools = poolsOfRole[role];
    int base = poolBase[r.rank()];
    for (; lanePool[lane] < pools.length; lanePool[lane]++) {
      int pool = pools[lanePool[lane]];
      if (head[base + pool] < r.poolFirst(pool + 1)) {
        claim(lane, head[base + pool]++);
        return;
      }
    }
    leave(lane);
  }

  /** Passes over the heads, from where it left; idle when none is ready. */
  private void advanceReadyFirst(int lane) {
    RankSchedule r = schedule.rank(laneRank[lane]);
    int[] pools = poolsOfRole[laneRole[lane]];
    int base = poolBase[r.rank()];
    boolean left = false;
    if (!laneIdle[lane]) {
      laneSince[lane] = now;
    }
    for (int i = 0; i < pools.length; i++) {
      int at = (lanePool[lane] + i) % pools.length;
      int task = head[base + pools[at]];
      if (task >= r.poolFirst(pools[at] + 1)) {
        continue;
      }
      left = true;
      if (firstUnmet(r, task) < 0) {
        head[base + pools[at]]++;
        lanePool[lane] = at + 1;
        laneIdle[lane] = false;
        claim(lane, task);
        wakeIdle(lane);
        return;
      }
    }
    if (left) {
      lanePool[lane] = 0;
      laneIdle[lane] = true;
    } else {
      laneIdle[lane] = false;
      leave(lane);
      wakeIdle(lane);
    }
  }

  /** Another idle lane of the same role looks at the heads, as they have changed. */
  private void wakeIdle(int lane) {
    for (int other = laneBase[laneRank[lane]]; other < laneBase[laneRank[lane] + 1]; other++) {
      if (laneIdle[other] && laneRole[other] == laneRole[lane]) {
        advanceReadyFirst(other);
        return;
      }
    }
  }

  private void leave(int lane) {
    int rank = laneRank[lane];
    lanesLeft[rank]--;
    endIfDone(rank);
  }

  private int firstUnmet(RankSchedule r, int task) {
    for (int wait = r.firstWait(task); wait < r.firstWait(task + 1); wait++) {
      if (seen(r.rank(), r.waitSignal(wait)) < wanted(r, wait)) {
        return wait;
      }
    }
    return -1;
  }

  private long wanted(RankSchedule r, int wait) {
    return (long) (epoch[r.rank()] - r.waitLag(wait)) * r.waitCount(wait);
  }

  private int seen(int rank, int signal) {
    return value[rank * schedule.signalCount() + signal];
  }

  private int record(int rank, int task) {
    return (epoch[rank] - 1) * tasks + taskBase[rank] + task;
  }

  private void claim(int lane, int task) {
    RankSchedule r = schedule.rank(laneRank[lane]);
    int record = record(r.rank(), task);
    timeline.lane[record] = lane - laneBase[r.rank()];
    timeline.claimed[record] = now;
    if (laneBefore[lane] != Timeline.NONE) {
      cause(record, laneBefore[lane], PathStep.Reason.LANE);
    } else {
      cause(record, lastRecord[r.rank()], PathStep.Reason.LAUNCH);
    }
    laneTask[lane] = task;
    laneWait[lane] = r.firstWait(task);
    lanePart[lane] = -1;
    laneWorked[lane] = 0;
    if (readyFirst[laneRole[lane]]) {
      readyFirstCause(lane, r, task, record);
    } else {
      meetWaits(lane);
    }
  }

  /** A lane that was idle waited for the signal of this head that came last. */
  private void readyFirstCause(int lane, RankSchedule r, int task, int record) {
    double since = laneSince[lane];
    int last = Timeline.NONE;
    for (int wait = r.firstWait(task); wait < r.firstWait(task + 1); wait++) {
      int by = raiser[r.rank() * schedule.signalCount() + r.waitSignal(wait)];
      if (by != Timeline.NONE
          && (last == Timeline.NONE || timeline.arrived[by] > timeline.arrived[last])) {
        last = by;
      }
    }
    if (last != Timeline.NONE && timeline.arrived[last] >= now && since < now) {
      timeline.claimed[record] = since;
      cause(record, last, PathStep.Reason.SIGNAL);
      add(now + machine.wake().after(now - since), WAKE, lane);
    } else {
      meetWaits(lane);
    }
  }

  private void cause(int record, int by, PathStep.Reason reason) {
    timeline.cause[record] = by;
    timeline.reason[record] = (byte) reason.ordinal();
  }

  /** Goes on with the waits of the task, then of its parts, as far as they are met. */
  private void meetWaits(int lane) {
    RankSchedule r = schedule.rank(laneRank[lane]);
    int task = laneTask[lane];
    for (; laneWait[lane] < r.firstWait(task + 1); laneWait[lane]++) {
      int wait = laneWait[lane];
      if (isBlocked(lane, r.waitSignal(wait), wanted(r, wait))) {
        return;
      }
    }
    if (lanePart[lane] >= 0) {
      meetPart(lane, r, task);
      return;
    }
    timeline.ready[record(r.rank(), task)] = now;
    if (waitsForParts(r, task)) {
      lanePart[lane] = 0;
      meetPart(lane, r, task);
    } else {
      if (r.kind(task) == TaskKind.PUT && !isWired(r, task)) {
        hold(lane, r, task);
      }
      work(lane, work[taskBase[r.rank()] + task]);
    }
  }

  private static boolean waitsForParts(RankSchedule r, int task) {
    int end = r.firstPart(r.firstStream(task + 1));
    for (int part = r.firstPart(r.firstStream(task)); part < end; part++) {
      if (r.partSignal(part) != RankSchedule.NO_SIGNAL) {
        return true;
      }
    }
    return false;
  }

  /** The parts of all streams with the same number are read together, for an equal share. */
  private void meetPart(int lane, RankSchedule r, int task) {
    int most = 0;
    for (int s = r.firstStream(task); s < r.firstStream(task + 1); s++) {
      int part = r.firstPart(s) + lanePart[lane];
      most = Math.max(most, r.firstPart(s + 1) - r.firstPart(s));
      if (part < r.firstPart(s + 1) && r.partSignal(part) != RankSchedule.NO_SIGNAL) {
        long wanted = (long) (epoch[r.rank()] - r.partLag(part)) * r.partCount(part);
        if (isBlocked(lane, r.partSignal(part), wanted)) {
          return;
        }
      }
    }
    lanePart[lane] = lanePart[lane] + 1 == most ? Integer.MAX_VALUE : lanePart[lane] + 1;
    work(lane, work[taskBase[r.rank()] + task] / most);
  }

  private boolean isBlocked(int lane, int signal, long wanted) {
    if (seen(laneRank[lane], signal) >= wanted) {
      return false;
    }
    laneSignal[lane] = signal;
    laneWanted[lane] = wanted;
    laneSince[lane] = now;
    return true;
  }

  /** A put inside the node takes its turn on the link of the rank. */
  private void hold(int lane, RankSchedule r, int task) {
    int record = record(r.rank(), task);
    laneHeldUntil[lane] =
        links.mapped(r.rank(), record, now, TaskCosts.putBytes(r, task), timeline.behind);
  }

  private void work(int lane, double nanos) {
    laneWorked[lane] += nanos;
    if (machine.host().processors() == 0) {
      add(now + nanos, WORKED, lane);
    } else {
      run(processOf[laneRank[lane]], lane, nanos);
    }
  }

  private void run(int process, int job, double nanos) {
    processors[process].add(now, job, nanos);
    schedule(process);
  }

  private void schedule(int process) {
    double next = processors[process].next();
    version[process]++;
    if (next < Double.POSITIVE_INFINITY) {
      add(
          Math.max(now, next),
          PROCESSORS,
          (long) process << VERSION_BITS | (version[process] & 0xffffffffL));
    }
  }

  private void processorsDue(int process, int ofVersion) {
    if (ofVersion != version[process]) {
      return;
    }
    int job = processors[process].takeDue(now);
    // Before what follows: it may add jobs.
    schedule(process);
    if (job < 0) {
      return;
    }
    if (job < laneRank.length) {
      worked(job);
    } else {
      proxyWorked(job - laneRank.length);
    }
  }

  private void worked(int lane) {
    if (laneHeldUntil[lane] > now) {
      add(laneHeldUntil[lane], WORKED, lane);
      laneHeldUntil[lane] = 0;
      return;
    }
    laneHeldUntil[lane] = 0;
    if (lanePart[lane] >= 0 && lanePart[lane] < Integer.MAX_VALUE) {
      meetPart(lane, schedule.rank(laneRank[lane]), laneTask[lane]);
      return;
    }
    done(lane);
  }

  private void done(int lane) {
    RankSchedule r = schedule.rank(laneRank[lane]);
    int task = laneTask[lane];
    int record = record(r.rank(), task);
    timeline.done[record] = now;
    timeline.arrived[record] = now;
    roleBusy[laneRole[lane]] += laneWorked[lane];
    roleWaited[laneRole[lane]] += timeline.ready[record] - timeline.claimed[record];
    laneTask[lane] = -1;
    laneBefore[lane] = record;
    lastRecord[r.rank()] = record;
    int first = r.firstRaise(task);
    int end = isWired(r, task) ? first + 1 : r.firstRaise(task + 1);
    for (int raise = first; raise < end; raise++) {
      long what = pack(epoch[r.rank()], raiseBase[r.rank()] + raise);
      if (!topology.sameNode(r.rank(), r.raiseRank(raise))) {
        add(now, COMMAND, what);
      } else if (r.raiseRank(raise) != r.rank()) {
        raiseAfter(machine.mapped().latencyNanos(), what);
      } else {
        raiseAfter(machine.raiseNanos(), what);
      }
    }
    advance(lane);
  }

  // ---- Signals. A raise travels as its epoch and its number among the raises of all ranks.

  private long pack(int ofEpoch, int raise) {
    return (long) (ofEpoch - 1) * taskOfRaise.length + raise;
  }

  private int raiseOf(long what) {
    return (int) (what % taskOfRaise.length);
  }

  private int epochOf(long what) {
    return (int) (what / taskOfRaise.length) + 1;
  }

  private int rankOfRaise(int raise) {
    int rank = Arrays.binarySearch(raiseBase, raise);
    if (rank < 0) {
      return -rank - 2;
    }
    while (raiseBase[rank + 1] == raise) {
      rank++;
    }
    return rank;
  }

  private int recordOf(long what) {
    int raise = raiseOf(what);
    return (epochOf(what) - 1) * tasks + taskBase[rankOfRaise(raise)] + taskOfRaise[raise];
  }

  private void raiseAfter(double nanos, long what) {
    if (nanos == 0) {
      raise(what);
    } else {
      add(now + nanos, RAISE, what);
    }
  }

  private void raise(long what) {
    int number = raiseOf(what);
    int from = rankOfRaise(number);
    RankSchedule r = schedule.rank(from);
    int raise = number - raiseBase[from];
    int owner = r.raiseRank(raise);
    int signal = r.raiseSignal(raise);
    int copy = owner * schedule.signalCount() + signal;
    int record = recordOf(what);
    timeline.arrived[record] = now;
    raiser[copy] = record;
    value[copy] = counter[signal] ? value[copy] + 1 : epochOf(what);
    for (int lane = laneBase[owner]; lane < laneBase[owner + 1]; lane++) {
      if (laneSignal[lane] == signal && value[copy] >= laneWanted[lane]) {
        laneSignal[lane] = -1;
        cause(record(owner, laneTask[lane]), record, PathStep.Reason.SIGNAL);
        add(now + machine.wake().after(now - laneSince[lane]), WAKE, lane);
      }
    }
    for (int lane = laneBase[owner]; lane < laneBase[owner + 1]; lane++) {
      if (laneIdle[lane]) {
        int role = laneRole[lane];
        advanceReadyFirst(lane);
        while (lane + 1 < laneBase[owner + 1] && laneRole[lane + 1] == role) {
          lane++;
        }
      }
    }
  }

  // ---- Transfers

  /** What waits for a proxy, oldest first; what it does now is at the head. */
  private static final class ProxyLine {
    private long[] jobs = new long[16];
    private int first;
    private int size;
    private boolean working;
    private int last = Timeline.NONE;
    private double busy;

    void add(long job) {
      if (size == jobs.length) {
        long[] grown = new long[size * 2];
        for (int i = 0; i < size; i++) {
          grown[i] = jobs[(first + i) & (jobs.length - 1)];
        }
        jobs = grown;
        first = 0;
      }
      jobs[(first + size++) & (jobs.length - 1)] = job;
    }

    long head() {
      return jobs[first];
    }

    void remove() {
      first = (first + 1) & (jobs.length - 1);
      size--;
    }
  }

  /** Gives the proxy of a rank a command, or bytes that it has to move. */
  private void offer(int rank, long what, boolean bytes) {
    int process = processOf[rank];
    ProxyLine line = proxies[process];
    line.add(what << 1 | (bytes ? 1 : 0));
    if (line.working) {
      int record = recordOf(what);
      if (timeline.behind[record] == Timeline.NONE && line.last != record) {
        timeline.behind[record] = line.last;
      }
    } else {
      line.working = true;
      if (machine.proxy().latencyNanos() == 0) {
        nextOfProxy(process);
      } else {
        add(now + machine.proxy().latencyNanos(), PROXY_WAKE, process);
      }
    }
    line.last = recordOf(what);
  }

  private void nextOfProxy(int process) {
    ProxyLine line = proxies[process];
    long job = line.head();
    double nanos = machine.proxy().commandNanos();
    if ((job & 1) != 0) {
      nanos = TaskCosts.seconds(putBytes(job >>> 1), machine.proxy().bytesPerSecond()) * 1e9;
    }
    line.busy += nanos;
    if (machine.host().processors() > 0) {
      run(process, laneRank.length + process, nanos);
    } else {
      add(now + nanos, PROXY_WORKED, process);
    }
  }

  private void proxyWorked(int process) {
    ProxyLine line = proxies[process];
    long job = line.head();
    line.remove();
    if (line.size > 0) {
      nextOfProxy(process);
    } else {
      line.working = false;
    }
    long what = job >>> 1;
    if ((job & 1) != 0) {
      deliver(what);
      return;
    }
    int raise = raiseOf(what);
    int rank = rankOfRaise(raise);
    int peer = schedule.rank(rank).raiseRank(raise - raiseBase[rank]);
    add(links.wire(rank, peer, recordOf(what), now, putBytes(what), timeline.behind), ARRIVE, what);
  }

  private double putBytes(long what) {
    int raise = raiseOf(what);
    return TaskCosts.putBytes(schedule.rank(rankOfRaise(raise)), taskOfRaise[raise]);
  }

  private void arrived(long what) {
    if (machine.proxy().bytesPerSecond() > 0) {
      offer(rankOfRaise(raiseOf(what)), what, true);
    } else {
      deliver(what);
    }
  }

  private void deliver(long what) {
    raise(what);
    add(now + machine.wire().latencyNanos(), COMPLETE, what);
  }

  private void complete(long what) {
    int raise = raiseOf(what);
    int rank = rankOfRaise(raise);
    RankSchedule r = schedule.rank(rank);
    int task = taskOfRaise[raise];
    if (isWired(r, task)) {
      for (int done = r.firstRaise(task) + 1; done < r.firstRaise(task + 1); done++) {
        raise(pack(epochOf(what), raiseBase[rank] + done));
      }
    }
    lastRecord[rank] = recordOf(what);
    transfersLeft[rank]--;
    endIfDone(rank);
  }

  // ---- What is told in the end

  private List<Simulation.Blocked> blocked() {
    List<Simulation.Blocked> all = new ArrayList<>();
    for (int lane = 0; lane < laneRank.length; lane++) {
      int rank = laneRank[lane];
      if (laneSignal[lane] >= 0) {
        all.add(
            new Simulation.Blocked(
                rank,
                laneTask[lane],
                laneSignal[lane],
                laneWanted[lane],
                seen(rank, laneSignal[lane]),
                epoch[rank]));
      } else if (laneIdle[lane]) {
        blockedHeads(lane, all);
      }
    }
    return all;
  }

  private void blockedHeads(int lane, List<Simulation.Blocked> all) {
    RankSchedule r = schedule.rank(laneRank[lane]);
    for (int pool : poolsOfRole[laneRole[lane]]) {
      int task = head[poolBase[r.rank()] + pool];
      if (task < r.poolFirst(pool + 1)) {
        int wait = firstUnmet(r, task);
        Simulation.Blocked one =
            new Simulation.Blocked(
                r.rank(),
                task,
                r.waitSignal(wait),
                wanted(r, wait),
                seen(r.rank(), r.waitSignal(wait)),
                epoch[r.rank()]);
        if (!all.contains(one)) {
          all.add(one);
        }
      }
    }
  }

  private Simulation.Totals usage() {
    Map<String, Simulation.RoleUse> roles = new HashMap<>();
    for (int rank = 0; rank < ranks; rank++) {
      List<Role> own = schedule.rank(rank).roles();
      for (int i = 0; i < own.size(); i++) {
        Role role = own.get(i);
        int lanes = machine.lanes().of(role);
        double busy = roleBusy[roleBase[rank] + i];
        roles.merge(
            role.name(),
            new Simulation.RoleUse(
                role.name(), lanes, busy, roleWaited[roleBase[rank] + i], busy / lanes),
            Simulation.RoleUse::plus);
      }
    }
    double proxyMost = 0;
    for (ProxyLine line : proxies) {
      proxyMost = Math.max(proxyMost, line.busy);
    }
    double processorMost = 0;
    for (Processors each : processors) {
      processorMost = Math.max(processorMost, each.busy());
    }
    return new Simulation.Totals(
        roles.values().stream().sorted(Comparator.comparing(Simulation.RoleUse::name)).toList(),
        links.mostSent(),
        links.mostReceived(),
        links.mostMapped(),
        proxyMost,
        processorMost);
  }
}
