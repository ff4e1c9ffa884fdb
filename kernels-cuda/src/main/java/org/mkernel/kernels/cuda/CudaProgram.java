package org.mkernel.kernels.cuda;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;

/**
 * What NVRTC is asked to compile. Equal programs give equal kernels.
 *
 * @param name of the main source, for messages
 * @param source its text
 * @param headers texts by the names that {@code #include} gives them
 * @param architecture what to compile for, as {@code sm_90a}
 * @param options more options of NVRTC, as {@code -DNAME=VALUE}, in order
 */
record CudaProgram(
    String name,
    String source,
    SortedMap<String, String> headers,
    String architecture,
    List<String> options) {
  /** What every program is compiled with. The last makes NVRTC tell what kernels use. */
  private static final List<String> ALWAYS = List.of("--std=c++20", "--ptxas-options=-v");

  CudaProgram {
    headers = java.util.Collections.unmodifiableSortedMap(new TreeMap<>(headers));
    options = List.copyOf(options);
  }

  /** All that NVRTC is given as options. */
  List<String> arguments() {
    List<String> all = new ArrayList<>();
    all.add("--gpu-architecture=" + architecture);
    all.addAll(ALWAYS);
    all.addAll(options);
    return all;
  }

  /**
   * What it is kept by: SHA-256 over sources, options, architecture and the compiler.
   *
   * @param compiler the version of NVRTC
   * @return hexadecimal digits
   */
  String digest(int compiler) {
    var sha = CubinEntry.sha256();
    List<String> parts = new ArrayList<>(List.of("nvrtc " + compiler, name, source));
    for (Map.Entry<String, String> header : headers.entrySet()) {
      parts.add(header.getKey());
      parts.add(header.getValue());
    }
    parts.add("");
    parts.addAll(arguments());
    for (String part : parts) {
      byte[] bytes = part.getBytes(StandardCharsets.UTF_8);
      // Lengths keep apart what would read the same when joined.
      sha.update((bytes.length + ":").getBytes(StandardCharsets.UTF_8));
      sha.update(bytes);
    }
    return HexFormat.of().formatHex(sha.digest());
  }

  /** The program in words, without its text. */
  String describe() {
    return name + " for " + architecture + (options.isEmpty() ? "" : " " + options);
  }
}
