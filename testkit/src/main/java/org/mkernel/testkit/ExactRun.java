package org.mkernel.testkit;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.mkernel.api.Collective;
import org.mkernel.api.DType;
import org.mkernel.api.Operation;
import org.mkernel.api.OperationReport;
import org.mkernel.api.Rank;
import org.mkernel.api.Tensor;
import org.mkernel.api.World;
import org.mkernel.api.spi.CollectiveProvider;
import org.mkernel.api.spi.OperandSpec;
import org.mkernel.api.spi.Problem;

/**
 * Runs any operator on inputs whose sums are exactly representable, so that each element of the
 * outputs is either right to the last bit or wrong. Inputs are small integers that depend on the
 * iteration; outputs are poisoned with NaN before each launch; so zeros, unwritten elements,
 * swapped tiles and results of an earlier epoch all count as wrong.
 *
 * <p>On request inputs are random instead, and an element is wrong if its error is larger than
 * rounding explains.
 */
public final class ExactRun {
  private static final ValueLayout.OfShort SHORT =
      ValueLayout.JAVA_SHORT.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfInt INT =
      ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN);

  /** How much an activation of ours can magnify an error. */
  private static final double SLOPE = 1.2;

  private final World world;
  private final CollectiveProvider provider;
  private final Problem problem;
  private final List<OperandSpec> operands;
  private long seed = 1;
  private int iterations = 2;
  private boolean exact = true;
  private Consumer<List<Tensor>> tamper = outputs -> {};

  /**
   * Sets up a run.
   *
   * @param world where to run; each process checks its own ranks
   * @param provider the operator
   * @param problem what to compute; its topology is the world's
   */
  public ExactRun(World world, CollectiveProvider provider, Problem problem) {
    this.world = world;
    this.provider = provider;
    this.problem = problem;
    this.operands = provider.operands(problem);
  }

  /**
   * Sets the seed of the inputs.
   *
   * @param value the seed, 1 unless set
   * @return this
   */
  public ExactRun seed(long value) {
    seed = value;
    return this;
  }

  /**
   * Sets how often to launch, each time with other inputs.
   *
   * @param count at least 1; 2 unless set
   * @return this
   */
  public ExactRun iterations(int count) {
    iterations = count;
    return this;
  }

  /**
   * Takes random inputs in −1 … 1, whose sums round. Errors may be as large as the reference says,
   * plus the rounding of the result.
   *
   * @return this
   */
  public ExactRun random() {
    exact = false;
    return this;
  }

  /**
   * Sets something that spoils the outputs before they are checked, to see that the check fails.
   *
   * @param spoiler is given the outputs of one rank
   * @return this
   */
  public ExactRun tamper(Consumer<List<Tensor>> spoiler) {
    tamper = spoiler;
    return this;
  }

  /**
   * What a run gave.
   *
   * @param elements elements that were checked, of all ranks of this process and iterations
   * @param wrong how many were wrong
   * @param digest SHA-256 of the outputs of the last iteration, in order of this process's ranks
   * @param rankDigests the same of each of them
   * @param report what the first of them prepared
   */
  public record Result(
      long elements, long wrong, String digest, List<String> rankDigests, OperationReport report) {
    /** Copies the list. */
    public Result {
      rankDigests = List.copyOf(rankDigests);
    }
  }

  /**
   * Runs.
   *
   * @return counts and digest
   */
  public Result run() {
    AtomicLong elements = new AtomicLong();
    AtomicLong wrong = new AtomicLong();
    AtomicReference<OperationReport> report = new AtomicReference<>();
    int first = world.localRanks().getFirst().index();
    byte[][] digests = new byte[world.localRanks().size()][];
    InputValues inputs = new InputValues(provider, problem, exact);
    Map<Long, CollectiveProvider.Reference> references = new ConcurrentHashMap<>();
    world.eachLocalRank(rank -> {
      Map<String, Tensor> tensors = new HashMap<>();
      List<Tensor> outputs = new ArrayList<>();
      for (OperandSpec operand : operands) {
        OperandSpec.Shard shard = operand.shards().get(rank.index());
        Tensor tensor = rank.allocate(problem.dtype(), shard.rows(), shard.columns());
        tensors.put(operand.name(), tensor);
        if (operand.output()) {
          outputs.add(tensor);
        }
      }
      try (Operation operation =
          rank.prepare(Collective.of(provider.name(), tensors, problem.options()))) {
        if (rank.index() == first) {
          report.set(operation.report());
        }
        for (int i = 0; i < iterations; i++) {
          long round = seed * 1_000_003 + i;
          fill(rank, tensors, inputs, round);
          long epoch = operation.launch();
          operation.await(epoch, TimeUnit.MINUTES.toNanos(2));
          tamper.accept(outputs);
          // One for all ranks: what it keeps for one serves the others.
          CollectiveProvider.Reference reference =
              references.computeIfAbsent(round, r -> reference(inputs, r));
          check(rank, tensors, reference, elements, wrong);
        }
      }
      digests[world.localRanks().indexOf(rank)] = digest(outputs);
    });
    return new Result(
        elements.get(),
        wrong.get(),
        combine(digests),
        Arrays.stream(digests).map(HexFormat.of()::formatHex).toList(),
        java.util.Objects.requireNonNull(report.get()));
  }

  private void fill(Rank rank, Map<String, Tensor> tensors, InputValues inputs, long round) {
    for (int o = 0; o < operands.size(); o++) {
      OperandSpec operand = operands.get(o);
      OperandSpec.Shard shard = operand.shards().get(rank.index());
      Tensor tensor = tensor(tensors, operand);
      MemorySegment memory = memory(tensor);
      if (operand.output()) {
        tensor.write(0, memory.fill((byte) 0xff));
        continue;
      }
      double[] values = new double[Math.toIntExact(shard.columns())];
      for (long row = 0; row < shard.rows(); row++) {
        inputs.row(round, rank.index(), o, row, values);
        for (int column = 0; column < values.length; column++) {
          put(memory, problem.dtype(), row * values.length + column, (float) values[column]);
        }
      }
      tensor.write(0, memory);
    }
  }

  private CollectiveProvider.Reference reference(InputValues inputs, long round) {
    return provider.reference(
        problem,
        (owner, name, row, out) -> {
          int o = 0;
          while (!operands.get(o).name().equals(name)) {
            o++;
          }
          inputs.row(round, owner, o, row, out);
        });
  }

  private void check(
      Rank rank,
      Map<String, Tensor> tensors,
      CollectiveProvider.Reference reference,
      AtomicLong elements,
      AtomicLong wrong) {
    for (OperandSpec operand : operands) {
      OperandSpec.Shard shard = operand.shards().get(rank.index());
      if (!operand.output() || shard.rows() == 0) {
        continue;
      }
      MemorySegment memory = bytes(tensor(tensors, operand));
      double[] values = new double[Math.toIntExact(shard.columns())];
      double[] magnitudes = new double[values.length];
      for (long row = 0; row < shard.rows(); row++) {
        reference.row(rank.index(), operand.name(), row, values, magnitudes);
        for (int column = 0; column < values.length; column++) {
          float seen = get(memory, problem.dtype(), row * shard.columns() + column);
          elements.incrementAndGet();
          if (!isRight(seen, values[column], magnitudes[column], reference.roundOff())) {
            wrong.incrementAndGet();
          }
        }
      }
    }
  }

  private boolean isRight(float seen, double value, double magnitude, double roundOff) {
    DType dtype = problem.dtype();
    if (exact) {
      // Decoding what was encoded rounds as the operator must.
      return seen == dtype.decode(dtype.encode((float) value));
    }
    double sum = roundOff * magnitude * SLOPE;
    double rounding = (Math.abs(value) + sum) * Math.scalb(1.0, -dtype.significandBits());
    double smallest = dtype == DType.F16 ? 0x1p-25 : Float.MIN_NORMAL;
    // Of NaN every comparison is false: it is never right.
    return Math.abs(seen - value) <= sum + rounding + smallest;
  }

  private static Tensor tensor(Map<String, Tensor> tensors, OperandSpec operand) {
    return java.util.Objects.requireNonNull(tensors.get(operand.name()), operand.name());
  }

  /** Memory of the host for all elements of a tensor. */
  private static MemorySegment memory(Tensor tensor) {
    return Arena.ofAuto().allocate(tensor.rows() * tensor.pitch(), Long.BYTES);
  }

  /** What a tensor holds, wherever it lies. */
  private static MemorySegment bytes(Tensor tensor) {
    MemorySegment memory = memory(tensor);
    tensor.read(0, memory);
    return memory;
  }

  private static void put(MemorySegment memory, DType dtype, long index, float value) {
    if (dtype.bytes() == 4) {
      memory.setAtIndex(INT, index, dtype.encode(value));
    } else {
      memory.setAtIndex(SHORT, index, (short) dtype.encode(value));
    }
  }

  private static float get(MemorySegment memory, DType dtype, long index) {
    return dtype.decode(
        dtype.bytes() == 4 ? memory.getAtIndex(INT, index) : memory.getAtIndex(SHORT, index));
  }

  private static byte[] digest(List<Tensor> outputs) {
    MessageDigest sha = sha256();
    for (Tensor output : outputs) {
      if (output.rows() > 0) {
        sha.update(bytes(output).asByteBuffer());
      }
    }
    return sha.digest();
  }

  private static String combine(byte[][] digests) {
    MessageDigest sha = sha256();
    for (byte[] digest : digests) {
      sha.update(digest);
    }
    return HexFormat.of().formatHex(sha.digest());
  }

  private static MessageDigest sha256() {
    try {
      return MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every Java platform has SHA-256", e);
    }
  }
}
