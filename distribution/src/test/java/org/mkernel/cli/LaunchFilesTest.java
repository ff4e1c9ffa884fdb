package org.mkernel.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.mkernel.runtime.join.Launch;
import org.yaml.snakeyaml.LoaderOptions;
import org.yaml.snakeyaml.Yaml;
import org.yaml.snakeyaml.constructor.SafeConstructor;

/** The files that start mkernel on clusters, as far as they can be tested without one. */
final class LaunchFilesTest {
  private static final Path FILES = Path.of("src/main/image/share/launch");
  private static final Path BATCH = FILES.resolve("mkernel.sbatch");

  @TempDir Path folder;

  private record Ended(int status, String output) {}

  private Ended run(Map<String, String> environment, String... command) throws Exception {
    Path output = folder.resolve("output");
    ProcessBuilder builder =
        new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(output.toFile());
    builder.environment().keySet().removeIf(name -> name.startsWith("MKERNEL_"));
    builder.environment().putAll(environment);
    Process process = builder.start();
    try {
      assertThat(process.waitFor(1, TimeUnit.MINUTES)).isTrue();
    } finally {
      process.destroyForcibly();
    }
    return new Ended(process.exitValue(), Files.readString(output));
  }

  private static Path executable(Path file, String text) throws IOException {
    Files.createDirectories(file.getParent());
    Files.writeString(file, text);
    return Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rwxr-xr-x"));
  }

  /** A stand-in for srun starts two of the tasks, which say what they would do. */
  @Test
  void batchScriptGivesAllTasksASecretAndTheirArguments() throws Exception {
    executable(
        folder.resolve("image/bin/mkernel"),
        """
        #!/bin/sh
        echo "$@"
        stat -c %a "$MKERNEL_SECRET_FILE"
        wc -c < "$MKERNEL_SECRET_FILE"
        """);
    Path srun =
        executable(
            folder.resolve("bin/srun"),
            """
            #!/bin/sh
            while [ "${1#--}" != "$1" ]; do shift; done
            "$@" && "$@" && exit 7
            """);
    Map<String, String> environment =
        Map.of(
            "PATH",
            srun.getParent() + ":" + System.getenv("PATH"),
            "HOME",
            folder.toString(),
            "MKERNEL_IMAGE",
            folder.resolve("image").toString());
    Ended ended = run(environment, "bash", BATCH.toString(), "run", "all-gather", "--m", "8");
    assertThat(ended.output()).contains("run all-gather --m 8\n600\n64\n".repeat(2));
    assertThat(ended.status()).as("that of srun").isEqualTo(7);
    assertThat(run(environment, "bash", BATCH.toString()).output())
        .contains("run all-gather-gemm\n");
    assertThat(folder).isDirectoryNotContaining("glob:**.mkernel-secret*");
  }

  @Test
  void batchScriptIsSoundToShellcheck() throws Exception {
    assertThat(run(Map.of(), "bash", "-n", BATCH.toString())).isEqualTo(new Ended(0, ""));
    boolean there =
        List.of(System.getenv("PATH").split(":")).stream()
            .anyMatch(path -> Files.isExecutable(Path.of(path, "shellcheck")));
    assumeTrue(there, "shellcheck is not installed");
    assertThat(run(Map.of(), "shellcheck", BATCH.toString())).isEqualTo(new Ended(0, ""));
  }

  /** Slurm stops reading its options at the first command. */
  @Test
  void batchScriptAsksForTasksThatBecomeRanks() throws Exception {
    String text = Files.readString(BATCH);
    String options = text.substring(0, text.indexOf("\nset "));
    int nodes = option(options, "nodes");
    int tasks = nodes * option(options, "ntasks-per-node");
    assertThat(text.indexOf("#SBATCH", options.length())).isNegative();
    for (int rank = 0; rank < tasks; rank++) {
      Launch launch =
          Launch.detect(
              Map.of(
                  "SLURM_JOB_ID", "71",
                  "SLURM_STEP_ID", "0",
                  "SLURM_PROCID", Integer.toString(rank),
                  "SLURM_NTASKS", Integer.toString(tasks),
                  "SLURM_NODEID", Integer.toString(rank / (tasks / nodes)),
                  "SLURM_STEP_NODELIST", "gpu[03-04]",
                  "MKERNEL_SECRET_FILE", "/home/somebody/.mkernel-secret.x"));
      assertThat(launch.launcher()).isEqualTo("slurm");
      assertThat(launch.rank()).isEqualTo(rank);
      assertThat(launch.size()).isEqualTo(tasks);
      assertThat(launch.rendezvous().orElseThrow().host()).isEqualTo("gpu03");
    }
  }

  private static int option(String options, String name) {
    Matcher option =
        Pattern.compile("(?m)^#SBATCH --%s=([0-9]+)$".formatted(name)).matcher(options);
    assertThat(option.find()).as(name).isTrue();
    return Integer.parseInt(option.group(1));
  }

  private record Kubernetes(Map<?, ?> service, Map<?, ?> job) {
    static Kubernetes read() throws IOException {
      Map<Object, Map<?, ?>> kinds = new HashMap<>();
      Yaml yaml = new Yaml(new SafeConstructor(new LoaderOptions()));
      for (Object document : yaml.loadAll(Files.readString(FILES.resolve("mkernel-job.yaml")))) {
        kinds.put(((Map<?, ?>) document).get("kind"), (Map<?, ?>) document);
      }
      assertThat(kinds).containsOnlyKeys("Service", "Job");
      return new Kubernetes(kinds.get("Service"), kinds.get("Job"));
    }

    /** What lies at a path of names and numbers. */
    static Object at(Object document, Object... path) {
      Object value = document;
      for (Object step : path) {
        value =
            step instanceof Integer i ? ((List<?>) value).get(i) : ((Map<?, ?>) value).get(step);
        assertThat(value).as("%s of %s", step, List.of(path)).isNotNull();
      }
      return value;
    }

    Object pod(String name) {
      return at(job, "spec", "template", "spec", name);
    }
  }

  @Test
  void kubernetesJobGivesEachPodItsRank() throws Exception {
    Kubernetes files = Kubernetes.read();
    Map<String, String> environment = new HashMap<>();
    for (Object entry : (List<?>) Kubernetes.at(files.pod("containers"), 0, "env")) {
      Object value = ((Map<?, ?>) entry).get("value");
      if (value != null) {
        environment.put(Kubernetes.at(entry, "name").toString(), value.toString());
      }
    }
    int pods = (Integer) Kubernetes.at(files.job(), "spec", "completions");
    assertThat(Kubernetes.at(files.job(), "spec", "parallelism")).isEqualTo(pods);
    assertThat(Kubernetes.at(files.job(), "spec", "completionMode")).isEqualTo("Indexed");
    String host =
        "%s-0.%s".formatted(Kubernetes.at(files.job(), "metadata", "name"), files.pod("subdomain"));
    for (int rank = 0; rank < pods; rank++) {
      environment.put("JOB_COMPLETION_INDEX", Integer.toString(rank));
      Launch launch = Launch.detect(environment);
      assertThat(launch.launcher()).isEqualTo("kubernetes");
      assertThat(launch.rank()).isEqualTo(rank);
      assertThat(launch.size()).isEqualTo(pods);
      assertThat(launch.rendezvous().orElseThrow().host()).isEqualTo(host);
      assertThat(launch.rendezvous().orElseThrow().port())
          .isEqualTo(Kubernetes.at(files.service(), "spec", "ports", 0, "port"));
    }
  }

  @Test
  void kubernetesServiceNamesThePodsBeforeTheyAreReady() throws Exception {
    Kubernetes files = Kubernetes.read();
    assertThat(Kubernetes.at(files.service(), "metadata", "name"))
        .isEqualTo(files.pod("subdomain"));
    assertThat(Kubernetes.at(files.service(), "spec", "clusterIP")).isEqualTo("None");
    assertThat(Kubernetes.at(files.service(), "spec", "publishNotReadyAddresses")).isEqualTo(true);
    assertThat(Kubernetes.at(files.service(), "spec", "selector"))
        .isEqualTo(Kubernetes.at(files.job(), "spec", "template", "metadata", "labels"));
  }

  @Test
  void kubernetesPodHasTheSecretSharedMemoryAndTheRightToLock() throws Exception {
    Kubernetes files = Kubernetes.read();
    Object container = Kubernetes.at(files.pod("containers"), 0);
    assertThat((List<?>) Kubernetes.at(container, "env"))
        .filteredOn(entry -> Kubernetes.at(entry, "name").equals("MKERNEL_SECRET"))
        .singleElement()
        .satisfies(entry ->
            assertThat(Kubernetes.at(entry, "valueFrom", "secretKeyRef", "key"))
                .isEqualTo("secret"));
    assertThat(Kubernetes.at(container, "volumeMounts", 0, "mountPath")).isEqualTo("/dev/shm");
    assertThat(Kubernetes.at(container, "volumeMounts", 0, "name"))
        .isEqualTo(Kubernetes.at(files.pod("volumes"), 0, "name"));
    assertThat(Kubernetes.at(files.pod("volumes"), 0, "emptyDir", "medium")).isEqualTo("Memory");
    assertThat(Kubernetes.at(container, "securityContext", "capabilities", "add"))
        .isEqualTo(List.of("IPC_LOCK"));
    assertThat(files.pod("restartPolicy")).isEqualTo("Never");
  }

  @Test
  void containerHasWhatTheTransportsLoad() throws Exception {
    String text = Files.readString(FILES.resolve("Containerfile"));
    assertThat(text.lines().filter(line -> !line.startsWith("#")))
        .filteredOn(line -> line.matches("[A-Z]+ .*"))
        .extracting(line -> line.substring(0, line.indexOf(' ')))
        .containsExactly("FROM", "RUN", "COPY", "ENV", "USER", "ENTRYPOINT", "CMD");
    assertThat(text).contains("libibverbs1", "ibverbs-providers", "USER nobody");
    Matcher entry = Pattern.compile("ENTRYPOINT \\[\"/opt/mkernel/(.*)\"]").matcher(text);
    assertThat(entry.find()).isTrue();
    assertThat(FILES.resolve("../..").resolve(entry.group(1))).isExecutable();
  }
}
