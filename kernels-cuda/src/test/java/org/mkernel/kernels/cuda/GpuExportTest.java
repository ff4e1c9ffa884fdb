package org.mkernel.kernels.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.File;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.mkernel.api.spi.Device;

/** Memory that one process exports and another maps. */
@Tag("gpu")
final class GpuExportTest {
  private static final int BYTES = 1024;

  @TempDir Path folder;

  /** The other process: increments each byte of what it is given a handle of. */
  static final class Other {
    private Other() {}

    public static void main(String[] args) {
      byte[] bytes = new byte[BYTES];
      try (Device device = new CudaDeviceProvider().open(0, Thread::new);
          Device.Memory memory = device.map(HexFormat.of().parseHex(args[0]))) {
        device.read(memory.address(), MemorySegment.ofArray(bytes));
        for (int i = 0; i < bytes.length; i++) {
          bytes[i]++;
        }
        device.write(MemorySegment.ofArray(bytes), memory.address());
        System.out.println("incremented " + memory.bytes());
      }
    }
  }

  @Test
  void anotherProcessReadsAndWritesIt() throws Exception {
    byte[] bytes = new byte[BYTES];
    for (int i = 0; i < bytes.length; i++) {
      bytes[i] = (byte) i;
    }
    try (Device device = new CudaDeviceProvider().open(0, Thread::new);
        Device.Memory memory = device.allocate(1 << 20, 256)) {
      long address = memory.address() + 512;
      device.write(MemorySegment.ofArray(bytes), address);
      assertThat(other(HexFormat.of().formatHex(device.export(address, BYTES))))
          .contains("incremented " + BYTES);
      byte[] after = new byte[BYTES];
      device.read(address, MemorySegment.ofArray(after));
      for (int i = 0; i < bytes.length; i++) {
        assertThat(after[i]).as("byte %d", i).isEqualTo((byte) (i + 1));
      }
      byte[] beside = new byte[1];
      device.read(address + BYTES, MemorySegment.ofArray(beside));
      assertThat(beside).containsExactly(0);
    }
  }

  private String other(String handle) throws Exception {
    List<String> path = new ArrayList<>();
    for (String property : List.of("jdk.module.path", "java.class.path")) {
      if (System.getProperty(property) != null) {
        path.add(System.getProperty(property));
      }
    }
    path.add(Path.of(System.getProperty("basedir", "."), "target/test-classes").toString());
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin/java").toString());
    command.add("--enable-native-access=ALL-UNNAMED");
    for (String property :
        List.of(
            "java.library.path",
            "org.bytedeco.javacpp.pathsFirst",
            "org.bytedeco.javacpp.cachedir")) {
      if (System.getProperty(property) != null) {
        command.add("-D" + property + "=" + System.getProperty(property));
      }
    }
    command.add("-classpath");
    command.add(String.join(File.pathSeparator, path));
    command.add(Other.class.getName());
    command.add(handle);
    Path output = folder.resolve("output.txt");
    Process process =
        new ProcessBuilder(command)
            .redirectErrorStream(true)
            .redirectOutput(output.toFile())
            .start();
    if (!process.waitFor(1, TimeUnit.MINUTES)) {
      process.destroyForcibly();
      throw new AssertionError("the other process does not end");
    }
    String text = Files.readString(output, StandardCharsets.UTF_8);
    assertThat(process.exitValue()).as(text).isZero();
    return text;
  }
}
