package org.mkernel.testsuite;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Queue;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.management.JMException;
import javax.management.ObjectName;
import org.mkernel.api.Collective;
import org.mkernel.api.Config;
import org.mkernel.api.DType;
import org.mkernel.api.Failure;
import org.mkernel.api.MKernel;
import org.mkernel.api.MKernelException;
import org.mkernel.api.Operation;
import org.mkernel.api.PeerLostException;
import org.mkernel.api.Rank;
import org.mkernel.api.Tensor;
import org.mkernel.api.World;
import org.mkernel.api.schedule.RankSchedule;
import org.mkernel.api.schedule.Topology;
import org.mkernel.api.spi.CollectiveProvider;
import org.mkernel.api.spi.OperandSpec;
import org.mkernel.api.spi.Problem;

/**
 * A world whose emulated NIC has one fault, and what must come of it: as long as the fault has not
 * struck, right results; then an exception that blames the right rank, in time; and in the end
 * neither threads nor memory.
 *
 * @param problem what runs
 * @param fault where and when the NIC fails
 * @param launches how often
 * @param adversary seed of a wire that reorders, 0 for none
 */
record FaultScenario(Problem problem, Fault fault, int launches, long adversary) {
  private static final long GRACE_MILLIS = 1000;
  private static final long LONG_MILLIS = 20_000;

  /** So slow that nothing arrives; so slow that all does. */
  private static final String STANDSTILL = "100000000";

  private static final String SLUGGISH = "20";

  /** What the emulated NIC can do. */
  enum Kind {
    LOST_LINK,
    ERROR,
    OVERRUN,
    STANDSTILL,
    SLUGGISH
  }

  /** A fault of the link from a rank to another one, after some transfers. */
  record Fault(Kind kind, int from, int to, long after) {
    String option() {
      return switch (kind) {
        case LOST_LINK -> "lost-link:%d-%d@%d".formatted(from, to, after);
        case ERROR -> "error:%d-%d@%d".formatted(from, to, after);
        case OVERRUN -> "overrun:%d@%d".formatted(from, after);
        case STANDSTILL -> "slow:%d:%s".formatted(from, FaultScenario.STANDSTILL);
        case SLUGGISH -> "slow:%d:%s".formatted(from, FaultScenario.SLUGGISH);
      };
    }

    /** Whether nobody hears of it before the deadline. */
    boolean isSilent() {
      return kind == Kind.LOST_LINK || kind == Kind.STANDSTILL;
    }
  }

  /** One that a seed decides: any operator, world, fault and time. */
  static FaultScenario random(long seed) {
    Random random = new Random(seed);
    List<String> operators = Problems.names();
    String operator = operators.get(random.nextInt(operators.size()));
    Topology world = Topology.of(2 + random.nextInt(2), 1 + random.nextInt(2));
    Map<String, Long> sizes =
        Map.of("m", sizeUpTo(24, random), "n", sizeUpTo(12, random), "k", sizeUpTo(12, random));
    String chunk = Integer.toString(1 + random.nextInt(6));
    Problem problem =
        Problems.of(
            operator,
            world,
            DType.F32,
            sizes,
            Map.of("chunk-rows", chunk, "chunk-elements", Integer.toString(16)));
    List<int[]> links = links(problem);
    // A world whose shape leaves nothing to send has no link that could fail.
    int[] link =
        links.isEmpty() ? new int[] {0, world.size() - 1} : links.get(random.nextInt(links.size()));
    Kind kind = Kind.values()[random.nextInt(Kind.values().length)];
    Fault fault = new Fault(kind, link[0], link[1], random.nextInt(20));
    return new FaultScenario(
        problem, fault, 1 + random.nextInt(6), random.nextBoolean() ? seed : 0);
  }

  private static long sizeUpTo(int most, Random random) {
    return 1L + random.nextInt(most);
  }

  /** The links between nodes that carry something. */
  private static List<int[]> links(Problem problem) {
    var schedule = Problems.operator(problem).plan(problem);
    boolean[][] used = new boolean[schedule.topology().size()][schedule.topology().size()];
    for (int rank = 0; rank < used.length; rank++) {
      RankSchedule tasks = schedule.rank(rank);
      for (int raise = 0; raise < tasks.firstRaise(tasks.tasks()); raise++) {
        used[rank][tasks.raiseRank(raise)] |=
            !schedule.topology().sameNode(rank, tasks.raiseRank(raise));
      }
    }
    List<int[]> links = new ArrayList<>();
    for (int from = 0; from < used.length; from++) {
      for (int to = 0; to < used.length; to++) {
        if (used[from][to]) {
          links.add(new int[] {from, to});
        }
      }
    }
    return links;
  }

  /** What a run gave: what is wrong, and whether the fault was noticed. */
  record Outcome(Optional<String> wrong, boolean failed) {}

  /**
   * Runs.
   *
   * @param deadlineMillis the deadline, where the fault is silent; else it is long
   */
  Outcome run(long deadlineMillis) {
    long deadline = fault.isSilent() ? deadlineMillis : LONG_MILLIS;
    Queue<Thread> threads = new ConcurrentLinkedQueue<>();
    Config config =
        Config.defaults()
            .option("deadline", Double.toString(deadline / 1e3))
            .option("emulated.fault", fault.option())
            .option("emulated.adversarial", Long.toString(adversary))
            .threads(body -> {
              Thread thread = new Thread(body);
              threads.add(thread);
              return thread;
            });
    Queue<String> wrong = new ConcurrentLinkedQueue<>();
    long ended = System.nanoTime();
    AtomicLong lastLaunch = new AtomicLong(ended);
    MKernelException failure = null;
    try (MKernel mkernel = MKernel.open(config);
        World world =
            mkernel.local(
                problem.topology().nodes(),
                problem.topology().size() / problem.topology().nodes())) {
      try {
        world.eachLocalRank(rank -> launch(rank, lastLaunch, wrong));
      } finally {
        ended = System.nanoTime();
      }
    } catch (MKernelException e) {
      // Also of ranks that were too slow to make the world.
      failure = e;
    }
    threads.stream()
        .filter(Thread::isAlive)
        .forEach(thread -> wrong.add("the thread %s is left".formatted(thread.getName())));
    if (failure != null) {
      judge(failure).ifPresent(wrong::add);
      long millis = TimeUnit.NANOSECONDS.toMillis(ended - lastLaunch.get());
      if (millis > deadline + GRACE_MILLIS) {
        wrong.add("it took %d ms since the last launch".formatted(millis));
      }
    }
    return new Outcome(
        wrong.isEmpty() ? Optional.empty() : Optional.of(String.join("; ", wrong)),
        failure != null);
  }

  /** What is wrong with an exception. */
  private Optional<String> judge(MKernelException e) {
    Failure failure = e.failure();
    boolean right =
        e instanceof PeerLostException
            && failure.operation().filter(problem.operator()::equals).isPresent()
            && switch (fault.kind()) {
              case LOST_LINK, STANDSTILL -> failure.peer().orElse(-1) == fault.from();
              case ERROR ->
                  failure.rank().orElse(-1) == fault.from()
                      && failure.peer().orElse(-1) == fault.to();
              case OVERRUN ->
                  failure.rank().orElse(-1) == fault.from()
                      && String.valueOf(e.getMessage()).contains("overrun");
              case SLUGGISH -> false;
            };
    return right ? Optional.empty() : Optional.of("it is %s with %s".formatted(e, failure));
  }

  private void launch(Rank rank, AtomicLong lastLaunch, Queue<String> wrong) {
    Map<String, Tensor> tensors = new HashMap<>();
    List<OperandSpec> operands = Problems.operator(problem).operands(problem);
    for (OperandSpec operand : operands) {
      OperandSpec.Shard shard = operand.shards().get(rank.index());
      tensors.put(operand.name(), rank.allocate(DType.F32, shard.rows(), shard.columns()));
    }
    try (Operation operation =
            rank.prepare(Collective.of(problem.operator(), tensors, problem.options()));
        Arena arena = Arena.ofConfined()) {
      for (int i = 1; i <= launches; i++) {
        for (OperandSpec operand : operands) {
          fill(tensors.get(operand.name()), operand.output() ? Float.NaN : i, arena);
        }
        long epoch = operation.launch();
        lastLaunch.accumulateAndGet(System.nanoTime(), Math::max);
        operation.await(epoch, TimeUnit.MINUTES.toNanos(1));
        for (OperandSpec operand : operands) {
          if (operand.output() && !isRight(rank, operand, tensors.get(operand.name()), i, arena)) {
            wrong.add("rank %d has a wrong result in launch %d".formatted(rank.index(), i));
          }
        }
      }
    }
  }

  private static void fill(Tensor tensor, float value, Arena arena) {
    MemorySegment memory = arena.allocate(tensor.rows() * tensor.pitch(), Float.BYTES);
    for (long i = 0; i < memory.byteSize() / Float.BYTES; i++) {
      memory.setAtIndex(ValueLayout.JAVA_FLOAT, i, value);
    }
    tensor.write(0, memory);
  }

  /** Every input element is the number of the launch: a result of an earlier one is noticed. */
  private boolean isRight(Rank rank, OperandSpec operand, Tensor tensor, int launch, Arena arena) {
    CollectiveProvider.Reference reference =
        Problems.operator(problem)
            .reference(problem, (owner, name, row, out) -> Arrays.fill(out, launch));
    MemorySegment memory = arena.allocate(tensor.rows() * tensor.pitch(), Float.BYTES);
    tensor.read(0, memory);
    double[] values = new double[(int) tensor.columns()];
    for (long row = 0; row < tensor.rows(); row++) {
      reference.row(rank.index(), operand.name(), row, values, new double[values.length]);
      for (int column = 0; column < values.length; column++) {
        long index = row * values.length + column;
        if (memory.getAtIndex(ValueLayout.JAVA_FLOAT, index) != (float) values[column]) {
          return false;
        }
      }
    }
    return true;
  }

  /** Bytes that Java code holds outside of the heap, as the tracking of the JVM counts them. */
  static long nativeBytes() throws JMException {
    String report =
        (String)
            ManagementFactory.getPlatformMBeanServer()
                .invoke(
                    new ObjectName("com.sun.management:type=DiagnosticCommand"),
                    "vmNativeMemory",
                    new Object[] {new String[] {"summary", "scale=B"}},
                    new String[] {String[].class.getName()});
    Matcher matcher = Pattern.compile("Other \\(reserved=(\\d+)").matcher(report);
    if (!matcher.find()) {
      throw new AssertionError("the JVM needs -XX:NativeMemoryTracking=summary: " + report);
    }
    return Long.parseLong(matcher.group(1));
  }
}
