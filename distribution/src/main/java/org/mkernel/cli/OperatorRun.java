package org.mkernel.cli;

import java.io.ByteArrayOutputStream;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import org.mkernel.api.Collective;
import org.mkernel.api.Operation;
import org.mkernel.api.OperationReport;
import org.mkernel.api.Rank;
import org.mkernel.api.Tensor;
import org.mkernel.api.World;
import org.mkernel.api.spi.CollectiveProvider;
import org.mkernel.api.spi.OperandSpec;
import org.mkernel.api.spi.Problem;
import org.mkernel.cli.io.TensorWriter;

/**
 * Runs an operator: fills, launches, verifies, digests, writes. In a world of several processes
 * each does so for its own ranks, and all learn the whole outcome.
 */
final class OperatorRun {
  /** Of more launches than these, the last ones count: a run is as long as its user wants. */
  static final int TIMES_KEPT = 10_000;

  private static final long BATCH_BYTES = 256 << 10;
  private static final long AWAIT_NANOS = TimeUnit.DAYS.toNanos(1);

  private final CollectiveProvider operator;
  private final Problem problem;
  private final List<OperandSpec> operands;
  private final InputData inputs;
  private final int iterations;

  OperatorRun(
      CollectiveProvider operator,
      Problem problem,
      List<OperandSpec> operands,
      InputData inputs,
      int iterations) {
    this.operator = operator;
    this.problem = problem;
    this.operands = operands;
    this.inputs = inputs;
    this.iterations = iterations;
  }

  /**
   * What a run gave.
   *
   * @param report what the first rank of this process prepared
   * @param verifier what was compared, if it was
   * @param digest SHA-256 of all ranks' outputs in rank order
   * @param launchNanos the median over the last launches of the slowest rank's time
   */
  record Outcome(
      OperationReport report, Optional<Verifier> verifier, String digest, long launchNanos) {}

  /**
   * Runs.
   *
   * @param write whether the output is written, alike in all processes
   * @param writer writes it, in the process of rank 0
   */
  Outcome run(World world, boolean verify, boolean write, @Nullable TensorWriter writer) {
    int first = world.localRanks().getFirst().index();
    boolean alone = world.localRanks().size() == world.size();
    Optional<Verifier> verifier =
        verify ? Optional.of(new Verifier(problem, operator, inputs)) : Optional.empty();
    AtomicReference<@Nullable OperationReport> report = new AtomicReference<>();
    long[][] nanos = new long[world.size()][Math.min(iterations, TIMES_KEPT)];
    byte[][] digests = new byte[world.size()][];
    HostTensor[] firstOutput = new HostTensor[world.size()];
    world.eachLocalRank(rank -> {
      Map<String, Tensor> tensors = allocate(rank);
      try (Operation operation =
          rank.prepare(Collective.of(operator.name(), tensors, problem.options()))) {
        if (rank.index() == first) {
          report.set(operation.report());
        }
        for (int i = 0; i < iterations; i++) {
          if (i == iterations - 1) {
            poison(tensors); // Before the others it would only keep ranks from starting together.
          }
          long start = System.nanoTime();
          operation.await(operation.launch(), AWAIT_NANOS);
          long[] own = nanos[rank.index()];
          own[i % own.length] = System.nanoTime() - start;
        }
      }
      MessageDigest sha = sha256();
      for (OperandSpec operand : operands) {
        if (operand.output()) {
          HostTensor tensor = new HostTensor(tensor(tensors, operand));
          firstOutput[rank.index()] = tensor;
          tensor.forEachBlock(block -> sha.update(block.asByteBuffer()));
          verifier.ifPresent(v -> v.check(rank.index(), operand, tensor));
        }
      }
      digests[rank.index()] = sha.digest();
    });
    if (!alone) {
      tellOthers(world, nanos, digests, verifier);
    }
    MessageDigest all = sha256();
    for (byte[] digest : digests) {
      all.update(digest);
    }
    if (write && !alone) {
      gather(world, writer, firstOutput);
    } else if (writer != null) {
      write(writer, firstOutput);
    }
    OperationReport prepared = report.get();
    if (prepared == null) {
      throw new IllegalStateException("no rank reported");
    }
    return new Outcome(prepared, verifier, HexFormat.of().formatHex(all.digest()), median(nanos));
  }

  /** Exchanges what each process knows of its ranks: digest, times, and what was found wrong. */
  private void tellOthers(
      World world, long[][] nanos, byte[][] digests, Optional<Verifier> verifier) {
    world.eachLocalRank(rank -> {
      int own = rank.index();
      int times = nanos[own].length;
      ByteBuffer out = ByteBuffer.allocate(digests[own].length + Long.BYTES * (times + 3));
      out.put(digests[own]);
      for (long time : nanos[own]) {
        out.putLong(time);
      }
      out.putLong(verifier.map(Verifier::elements).orElse(0L));
      out.putLong(verifier.map(Verifier::wrong).orElse(0L));
      out.putDouble(verifier.map(Verifier::maxError).orElse(0.0));
      List<byte[]> all = rank.exchange().allGather(out.array());
      for (int peer = 0; peer < all.size(); peer++) {
        if (peer == own) {
          continue;
        }
        ByteBuffer in = ByteBuffer.wrap(all.get(peer));
        byte[] digest = new byte[digests[own].length];
        in.get(digest);
        digests[peer] = digest;
        for (int i = 0; i < times; i++) {
          nanos[peer][i] = in.getLong();
        }
        long elements = in.getLong();
        long wrong = in.getLong();
        double maxError = in.getDouble();
        verifier.ifPresent(v -> v.add(elements, wrong, maxError));
      }
    });
  }

  /** Brings the output to rank 0, some rows at a time. */
  private void gather(World world, @Nullable TensorWriter writer, HostTensor[] outputs) {
    OperandSpec operand = written(operands);
    int bytes = problem.dtype().bytes();
    long batch = Math.max(1, BATCH_BYTES / Math.max(1, operand.columns() * bytes));
    MemorySegment whole =
        MemorySegment.ofArray(new byte[Math.toIntExact(operand.columns() * bytes)]);
    world.eachLocalRank(rank -> {
      for (long from = 0; from < operand.rows(); from += batch) {
        long to = Math.min(operand.rows(), from + batch);
        List<byte[]> parts =
            rank.exchange()
                .allGather(
                    rows(outputs[rank.index()], operand.shards().get(rank.index()), from, to));
        for (long row = from; writer != null && row < to; row++) {
          for (int peer = 0; peer < parts.size(); peer++) {
            OperandSpec.Shard shard = operand.shards().get(peer);
            if (row >= shard.row() && row < shard.row() + shard.rows()) {
              long width = shard.columns() * bytes;
              MemorySegment.copy(
                  MemorySegment.ofArray(parts.get(peer)),
                  (row - Math.max(from, shard.row())) * width,
                  whole,
                  shard.column() * bytes,
                  width);
            }
          }
          writer.write(row, whole);
        }
      }
    });
    if (writer != null) {
      writer.commit();
    }
  }

  /** Those rows of a range that a rank has, end to end. */
  private static byte[] rows(HostTensor output, OperandSpec.Shard shard, long from, long to) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    long end = Math.min(to, shard.row() + shard.rows());
    for (long row = Math.max(from, shard.row()); row < end; row++) {
      bytes.writeBytes(output.row(row - shard.row()).toArray(ValueLayout.JAVA_BYTE));
    }
    return bytes.toByteArray();
  }

  /** The output that is written to a file. */
  static OperandSpec written(List<OperandSpec> operands) {
    return operands.stream().filter(OperandSpec::output).reduce((a, b) -> b).orElseThrow();
  }

  private static Tensor tensor(Map<String, Tensor> tensors, OperandSpec operand) {
    Tensor tensor = tensors.get(operand.name());
    if (tensor == null) {
      throw new IllegalStateException("operand " + operand.name() + " was not allocated");
    }
    return tensor;
  }

  private Map<String, Tensor> allocate(Rank rank) {
    Map<String, Tensor> tensors = new HashMap<>();
    for (OperandSpec operand : operands) {
      OperandSpec.Shard shard = operand.shards().get(rank.index());
      Tensor tensor = rank.allocate(problem.dtype(), shard.rows(), shard.columns());
      tensors.put(operand.name(), tensor);
      if (!operand.output()) {
        HostTensor elements = new HostTensor(tensor);
        double[] row = new double[Math.toIntExact(shard.columns())];
        for (long r = 0; r < shard.rows(); r++) {
          inputs.row(rank.index(), operand.name(), r, row);
          for (int c = 0; c < row.length; c++) {
            elements.put(r, c, row[c]);
          }
        }
        elements.flush();
      }
    }
    return tensors;
  }

  /** Fills outputs with NaN, so that what is not written is wrong. */
  private void poison(Map<String, Tensor> tensors) {
    for (OperandSpec operand : operands) {
      if (operand.output()) {
        new HostTensor(tensor(tensors, operand)).fill((byte) 0xff);
      }
    }
  }

  private void write(TensorWriter writer, HostTensor[] outputs) {
    OperandSpec operand = written(operands);
    int bytes = problem.dtype().bytes();
    MemorySegment whole =
        MemorySegment.ofArray(new byte[Math.toIntExact(operand.columns() * bytes)]);
    for (long row = 0; row < operand.rows(); row++) {
      for (int rank = 0; rank < outputs.length; rank++) {
        OperandSpec.Shard shard = operand.shards().get(rank);
        if (row >= shard.row() && row < shard.row() + shard.rows()) {
          MemorySegment part = outputs[rank].row(row - shard.row());
          MemorySegment.copy(part, 0, whole, shard.column() * bytes, part.byteSize());
        }
      }
      writer.write(row, whole);
    }
    writer.commit();
  }

  private static long median(long[][] nanos) {
    long[] slowest = new long[nanos[0].length];
    for (long[] rank : nanos) {
      for (int i = 0; i < slowest.length; i++) {
        slowest[i] = Math.max(slowest[i], rank[i]);
      }
    }
    Arrays.sort(slowest);
    return slowest[slowest.length / 2];
  }

  private static MessageDigest sha256() {
    try {
      return MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every Java platform has SHA-256", e);
    }
  }
}
