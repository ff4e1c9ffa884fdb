package org.mkernel.kernels.cuda;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Objects;

/** Small programs. */
final class TestPrograms {
  private TestPrograms() {}

  static CudaProgram scale(String... options) {
    return DeviceSources.program("scale.cu", TestPrograms::text, "sm_90a", List.of(options));
  }

  static String text(String name) {
    try (InputStream in =
        Objects.requireNonNull(TestPrograms.class.getResourceAsStream("/programs/" + name), name)) {
      return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
