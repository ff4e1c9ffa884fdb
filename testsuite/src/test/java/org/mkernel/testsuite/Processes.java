package org.mkernel.testsuite;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** The command in several processes, one for each rank, as a launcher starts them. */
final class Processes implements AutoCloseable {
  private static final String NATIVE_ACCESS =
      "org.bytedeco.cuda,org.bytedeco.javacpp,org.bytedeco.openblas,org.mkernel.kernels.cuda,"
          + "org.mkernel.kernels.host,org.mkernel.runtime,org.mkernel.transport.rdma,"
          + "org.mkernel.transport.tcp,org.mkernel.cli";

  private final Path folder;
  private final List<String> wrapper;
  private final List<Process> processes = new ArrayList<>();

  Processes(Path folder) {
    this(folder, List.of());
  }

  private Processes(Path folder, List<String> wrapper) {
    this.folder = folder;
    this.wrapper = wrapper;
  }

  /** Processes that each do something first, in a shell that is started by given words. */
  static Processes after(Path folder, String first, String... shell) {
    List<String> wrapper = new ArrayList<>(List.of(shell));
    wrapper.addAll(List.of("sh", "-c", first + " && exec \"$0\" \"$@\""));
    return new Processes(folder, wrapper);
  }

  /** Starts a rank; the environment of this process is not handed on. */
  void start(Map<String, String> environment, String... arguments) throws IOException {
    int rank = processes.size();
    List<String> command = new ArrayList<>(wrapper);
    command.add(ProcessHandle.current().info().command().orElseThrow());
    command.addAll(
        List.of(
            "-XX:TieredStopAtLevel=1",
            "-XX:+UseSerialGC",
            "-Xmx256m",
            "--illegal-native-access=deny",
            "--enable-native-access=" + NATIVE_ACCESS,
            "--module-path",
            System.getProperty("jdk.module.path"),
            "--module",
            "org.mkernel.cli/org.mkernel.cli.Main"));
    command.addAll(List.of(arguments));
    ProcessBuilder builder =
        new ProcessBuilder(command)
            .redirectOutput(folder.resolve("out" + rank).toFile())
            .redirectError(folder.resolve("err" + rank).toFile());
    builder.environment().keySet().removeIf(name -> name.startsWith("MKERNEL_"));
    builder.environment().putAll(environment);
    processes.add(builder.start());
  }

  /** Starts all ranks by explicit variables. */
  void startAll(int nodes, int ranksPerNode, Map<String, String> more, String... arguments)
      throws IOException {
    int size = nodes * ranksPerNode;
    int port = JoinedRanks.freePort();
    for (int rank = 0; rank < size; rank++) {
      Map<String, String> environment = new java.util.HashMap<>(more);
      environment.put("MKERNEL_RANK", Integer.toString(rank));
      environment.put("MKERNEL_WORLD_SIZE", Integer.toString(size));
      environment.put("MKERNEL_NODE", Integer.toString(rank / ranksPerNode));
      environment.put("MKERNEL_RENDEZVOUS", "127.0.0.1:" + port);
      start(environment, arguments);
    }
  }

  Process process(int rank) {
    return processes.get(rank);
  }

  String out(int rank) throws IOException {
    return Files.readString(folder.resolve("out" + rank));
  }

  String err(int rank) throws IOException {
    return Files.readString(folder.resolve("err" + rank));
  }

  /** Waits until each rank has written some words to standard error. */
  void awaitWords(String words) throws Exception {
    long deadline = System.nanoTime() + TimeUnit.MINUTES.toNanos(2);
    for (int rank = 0; rank < processes.size(); rank++) {
      while (!err(rank).contains(words)) {
        assertThat(processes.get(rank).isAlive()).as("rank %d: %s", rank, err(rank)).isTrue();
        assertThat(System.nanoTime()).as("words of rank %d", rank).isLessThan(deadline);
        Thread.sleep(20);
      }
    }
  }

  int await(int rank) throws Exception {
    assertThat(processes.get(rank).waitFor(2, TimeUnit.MINUTES))
        .as("rank %d still runs: %s", rank, err(rank))
        .isTrue();
    return processes.get(rank).exitValue();
  }

  @Override
  public void close() {
    for (Process process : processes) {
      process.destroyForcibly();
      process.onExit().join();
    }
  }
}
