package org.mkernel.kernels.cuda;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.function.UnaryOperator;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Our device sources: which headers belong to a source, and their texts. */
final class DeviceSources {
  private static final Pattern INCLUDE =
      Pattern.compile("^\\s*#\\s*include\\s+\"([^\"]+)\"", Pattern.MULTILINE);

  private DeviceSources() {}

  /**
   * A program from a source of ours and all that it includes.
   *
   * @param name of the source, as {@code interpreter.cu}
   * @param architecture what to compile for
   * @param options of NVRTC
   */
  static CudaProgram program(String name, String architecture, List<String> options) {
    return program(name, DeviceSources::ours, architecture, options);
  }

  /** The same with texts from elsewhere. */
  static CudaProgram program(
      String name, UnaryOperator<String> texts, String architecture, List<String> options) {
    String source = texts.apply(name);
    SortedMap<String, String> headers = new TreeMap<>();
    include(source, texts, headers);
    return new CudaProgram(name, source, headers, architecture, options);
  }

  private static void include(
      String text, UnaryOperator<String> texts, SortedMap<String, String> headers) {
    Matcher matcher = INCLUDE.matcher(text);
    while (matcher.find()) {
      String name = matcher.group(1);
      if (!headers.containsKey(name)) {
        String header = texts.apply(name);
        headers.put(name, header);
        include(header, texts, headers);
      }
    }
  }

  private static String ours(String name) {
    try (InputStream in = DeviceSources.class.getResourceAsStream("device/" + name)) {
      if (in == null) {
        throw new IllegalStateException("this module has no device source " + name);
      }
      return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    } catch (IOException e) {
      throw new UncheckedIOException("device source " + name + " can't be read", e);
    }
  }
}
