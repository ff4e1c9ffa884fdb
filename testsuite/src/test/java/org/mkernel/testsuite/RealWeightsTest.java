package org.mkernel.testsuite;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.mkernel.testsuite.ImageCommand.Result;

/**
 * The first feed-forward layer of a real model, MiniLM: embeddings of words times its weights,
 * split by columns over the ranks, plus its bias, through GELU. The command reads files as others
 * write them, and its output is compared with a double-precision reference that knows nothing of
 * mkernel.
 */
final class RealWeightsTest {
  private static final String LAYER = "onnx::MatMul_798";
  private static final int WORDS = 1000;
  private static final int HIDDEN = 384;
  private static final int INNER = 1536;
  private static final int WORLD = 4;

  /** Of a sum in fp32 with so many terms, in any order; GELU is at most 1.13 times as steep. */
  private static final double SUM_ROUNDING = 1.13 * (HIDDEN + 2) * 0x1p-24;

  private static float[] words;
  private static float[] weights;
  private static float[] bias;

  @TempDir Path folder;

  @BeforeAll
  static void readModel() throws IOException {
    OnnxTensors model;
    try (InputStream file = ClassLoader.getSystemResourceAsStream("all-minilm-l6-v2-q.onnx")) {
      model = new OnnxTensors(file.readAllBytes());
    }
    float[] all = model.dequantised("embeddings.word_embeddings.weight", HIDDEN);
    assertThat(all).hasSize(30522 * HIDDEN);
    // The first thousand are marks and letters; these are words.
    words = Arrays.copyOfRange(all, 2000 * HIDDEN, (2000 + WORDS) * HIDDEN);
    weights = model.dequantised(LAYER, INNER);
    assertThat(weights).hasSize(HIDDEN * INNER);
    bias = model.elements("encoder.layer.0.intermediate.dense.bias");
    assertThat(bias).hasSize(INNER);
  }

  @BeforeEach
  void imageIsBuilt() {
    ImageCommand.assumeBuilt();
  }

  private static byte[] littleEndian(float[] values) {
    ByteBuffer bytes = ByteBuffer.allocate(4 * values.length).order(ByteOrder.LITTLE_ENDIAN);
    bytes.asFloatBuffer().put(values);
    return bytes.array();
  }

  private void writeNpy(String name, float[] values, int rows, int columns) throws IOException {
    String header =
        "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }".formatted(rows, columns);
    header = header + " ".repeat(117 - header.length()) + "\n";
    ByteBuffer file = ByteBuffer.allocate(128 + 4 * values.length).order(ByteOrder.LITTLE_ENDIAN);
    file.put(new byte[] {(byte) 0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0}).putShort((short) 118);
    file.put(header.getBytes(US_ASCII)).put(littleEndian(values));
    Files.write(folder.resolve(name), file.array());
  }

  private void writeSafetensors(String name) throws IOException {
    long first = 4L * weights.length;
    String header =
        ("{\"__metadata__\":{\"format\":\"pt\"},"
                + "\"dense.weight\":{\"dtype\":\"F32\",\"shape\":[%d,%d],\"data_offsets\":[0,%d]},"
                + "\"dense.bias\":{\"dtype\":\"F32\",\"shape\":[%d],\"data_offsets\":[%d,%d]}}")
            .formatted(HIDDEN, INNER, first, INNER, first, first + 4L * bias.length);
    header += " ".repeat(-header.length() & 7);
    ByteBuffer file =
        ByteBuffer.allocate(8 + header.length() + 4 * (weights.length + bias.length))
            .order(ByteOrder.LITTLE_ENDIAN);
    file.putLong(header.length()).put(header.getBytes(US_ASCII));
    file.put(littleEndian(weights)).put(littleEndian(bias));
    Files.write(folder.resolve(name), file.array());
  }

  private void run(String dtype, String output) throws Exception {
    writeNpy("words.npy", words, WORDS, HIDDEN);
    writeSafetensors("layer.safetensors");
    try (ImageCommand command =
        ImageCommand.mkernel(
            folder,
            "run",
            "all-gather-gemm",
            "--m=" + WORDS,
            "--k=" + HIDDEN,
            "--n=" + INNER / WORLD,
            "--epilogue=gelu",
            "--dtype=" + dtype,
            "--iterations=1",
            "--input=a=words.npy",
            "--input=b=layer.safetensors#dense.weight",
            "--input=bias=layer.safetensors#dense.bias",
            "--output=" + output)) {
      Result result = command.end();
      assertThat(result.status()).as(result.err()).isZero();
      assertThat(result.out()).contains("right: 1,536,000 elements");
    }
  }

  private ByteBuffer elements(String name, int bytes) throws IOException {
    ByteBuffer file =
        ByteBuffer.wrap(Files.readAllBytes(folder.resolve(name))).order(ByteOrder.LITTLE_ENDIAN);
    int length = WORDS * INNER * bytes;
    return file.slice(file.capacity() - length, length).order(ByteOrder.LITTLE_ENDIAN);
  }

  @Test
  void inFp32() throws Exception {
    run("f32", "c.npy");
    ByteBuffer output = elements("c.npy", 4);
    compare(words, weights, bias, i -> output.getFloat(4 * i), 0x1p-22);
  }

  /** Inputs are rounded to bf16 first, as the command must round them. */
  @Test
  void inBf16() throws Exception {
    run("bf16", "c.safetensors");
    ByteBuffer output = elements("c.safetensors", 2);
    compare(
        bf16(words),
        bf16(weights),
        bf16(bias),
        i -> Float.intBitsToFloat(output.getShort(2 * i) << 16),
        0x1p-8);
  }

  /** Rounded to the nearest, ties to even. */
  private static float[] bf16(float[] values) {
    float[] rounded = new float[values.length];
    for (int i = 0; i < values.length; i++) {
      int bits = Float.floatToRawIntBits(values[i]);
      bits += 0x7fff + ((bits >>> 16) & 1);
      rounded[i] = Float.intBitsToFloat(bits & 0xffff0000);
    }
    return rounded;
  }

  private interface Elements {
    float at(int index);
  }

  private static void compare(float[] a, float[] b, float[] bias, Elements seen, double relative) {
    double[] largest = new double[WORDS];
    boolean[] differ = new boolean[WORDS];
    IntStream.range(0, WORDS)
        .parallel()
        .forEach(row -> {
          double[] sums = new double[INNER];
          double[] magnitudes = new double[INNER];
          for (int j = 0; j < INNER; j++) {
            sums[j] = bias[j];
            magnitudes[j] = Math.abs(bias[j]);
          }
          for (int k = 0; k < HIDDEN; k++) {
            double left = a[row * HIDDEN + k];
            for (int j = 0; j < INNER; j++) {
              double product = left * b[k * INNER + j];
              sums[j] += product;
              magnitudes[j] += Math.abs(product);
            }
          }
          for (int j = 0; j < INNER; j++) {
            double right = gelu(sums[j]);
            double bound = SUM_ROUNDING * magnitudes[j] + relative * Math.abs(right);
            double error = Math.abs(seen.at(row * INNER + j) - right);
            // Not "larger than": of NaN that is false.
            if (!(error <= bound)) {
              throw new AssertionError(
                  "word %d, column %d: %s instead of %s"
                      .formatted(row, j, seen.at(row * INNER + j), right));
            }
            largest[row] = Math.max(largest[row], Math.abs(right));
            differ[row] |= right != gelu(sums[0]);
          }
        });
    // The comparison means something: the values are those of a living layer.
    assertThat(Arrays.stream(largest)).allMatch(value -> value > 0.01);
    assertThat(differ).containsOnly(true);
  }

  private static double gelu(double x) {
    return 0.5 * x * (1 + erf(x / Math.sqrt(2)));
  }

  /** 2/√π · e^(−x²) · Σ 2ⁿ·x^(2n+1) / (1·3·5···(2n+1)): all terms have one sign. */
  private static double erf(double x) {
    if (Math.abs(x) > 6) {
      return Math.signum(x);
    }
    double term = x;
    double sum = x;
    for (int n = 1; Math.abs(term) > 1e-17 * Math.abs(sum); n++) {
      term *= 2 * x * x / (2 * n + 1);
      sum += term;
    }
    return 2 / Math.sqrt(Math.PI) * Math.exp(-x * x) * sum;
  }
}
