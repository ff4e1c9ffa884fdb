package org.mkernel.runtime.join;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.mkernel.api.MKernelException;
import org.mkernel.api.UsageException;

final class LaunchTest {
  private static Map<String, String> environment(String... assignments) {
    Map<String, String> map = new HashMap<>();
    for (String assignment : assignments) {
      map.put(assignment.split("=", 2)[0], assignment.split("=", 2)[1]);
    }
    return map;
  }

  private static final String[] EXPLICIT = {
    "MKERNEL_RANK=2", "MKERNEL_WORLD_SIZE=4", "MKERNEL_NODE=1", "MKERNEL_RENDEZVOUS=[::1]:4000"
  };
  private static final String[] SLURM = {
    "SLURM_JOB_ID=77",
    "SLURM_STEP_ID=3",
    "SLURM_PROCID=5",
    "SLURM_NTASKS=16",
    "SLURM_STEP_NUM_TASKS=8",
    "SLURM_NODEID=1",
    "SLURM_LOCALID=1",
    "SLURM_STEP_NODELIST=gpu[007-012,020],spare"
  };
  private static final String[] OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK=1",
    "OMPI_COMM_WORLD_SIZE=4",
    "OMPI_COMM_WORLD_LOCAL_RANK=1",
    "OMPI_COMM_WORLD_LOCAL_SIZE=4",
    "PMIX_NAMESPACE=123.1",
    "PMIX_RANK=1"
  };
  private static final String[] TORCHRUN = {
    "TORCHELASTIC_RUN_ID=x",
    "TORCHELASTIC_USE_AGENT_STORE=True",
    "RANK=3",
    "WORLD_SIZE=4",
    "LOCAL_RANK=1",
    "GROUP_RANK=1",
    "MASTER_ADDR=head",
    "MASTER_PORT=29500"
  };
  private static final String[] KUBERNETES = {
    "JOB_COMPLETION_INDEX=1", "MKERNEL_WORLD_SIZE=2", "MKERNEL_RENDEZVOUS=job-0.ranks:7000"
  };

  private static final int SLURM_PORT = 12000 + Math.floorMod("77.3".hashCode(), 16000);
  private static final int MPI_PORT = 12000 + Math.floorMod("123.1".hashCode(), 16000);

  static Stream<Arguments> launchers() {
    return Stream.of(
        Arguments.of("explicit", EXPLICIT, 2, 4, 1, "[::1]:4000"),
        Arguments.of("slurm", SLURM, 5, 8, 1, "gpu007:" + SLURM_PORT),
        Arguments.of("openmpi", OPEN_MPI, 1, 4, -1, "127.0.0.1:" + MPI_PORT),
        Arguments.of("torchrun", TORCHRUN, 3, 4, 1, "head:29501"),
        Arguments.of("kubernetes", KUBERNETES, 1, 2, -1, "job-0.ranks:7000"));
  }

  @ParameterizedTest
  @MethodSource("launchers")
  void knowsEachLauncherByItsVariables(
      String launcher, String[] variables, int rank, int size, int node, String rendezvous) {
    Launch launch = Launch.detect(environment(variables));
    assertThat(launch.launcher()).isEqualTo(launcher);
    assertThat(launch.rank()).isEqualTo(rank);
    assertThat(launch.size()).isEqualTo(size);
    assertThat(launch.node()).isEqualTo(node < 0 ? OptionalInt.empty() : OptionalInt.of(node));
    assertThat(launch.rendezvous().map(Endpoint::toString)).hasValue(rendezvous);
    assertThat(launch.origins())
        .extracting(Launch.Origin::what)
        .containsExactly("rank", "world", "node", "rendezvous");
    assertThat(launch.isLaunched()).isTrue();
  }

  @Test
  void withoutALauncherTheWorldHasOneRank() {
    Launch launch = Launch.detect(Map.of("PATH", "/bin", "MKERNEL_WORLD_SIZE", "1"));
    assertThat(launch.isLaunched()).isFalse();
    assertThat(launch.size()).isOne();
    assertThat(launch.rendezvous()).isEmpty();
  }

  @Test
  void aBatchScriptOfSlurmIsNoStep() {
    Launch launch =
        Launch.detect(environment("SLURM_JOB_ID=7", "SLURM_PROCID=0", "SLURM_NTASKS=8"));
    assertThat(launch.size()).isOne();
    assertThat(launch.describe()).contains("not started by srun");
  }

  @Test
  void theInnermostLauncherCounts() {
    Map<String, String> both = environment(SLURM);
    both.putAll(environment(OPEN_MPI));
    assertThat(Launch.detect(both).launcher()).isEqualTo("openmpi");
    both.putAll(environment(TORCHRUN));
    assertThat(Launch.detect(both).launcher()).isEqualTo("torchrun");
    both.putAll(environment(EXPLICIT));
    assertThat(Launch.detect(both).launcher()).isEqualTo("explicit");
  }

  @Test
  void aRendezvousOfOnesOwnOverrulesTheDerivedOne() {
    Map<String, String> own = environment(SLURM);
    own.put("MKERNEL_RENDEZVOUS", "other:99");
    own.put("MKERNEL_NODE", "0");
    assertThat(Launch.detect(own).rendezvous()).isEqualTo(Optional.of(new Endpoint("other", 99)));
    assertThat(Launch.detect(own).node()).hasValue(0);
  }

  @ParameterizedTest
  @CsvSource({
    "'MKERNEL_RANK=0', MKERNEL_WORLD_SIZE",
    "'MKERNEL_RANK=0 MKERNEL_WORLD_SIZE=2', MKERNEL_RENDEZVOUS",
    "'MKERNEL_WORLD_SIZE=2', MKERNEL_RANK",
    "'JOB_COMPLETION_INDEX=0', MKERNEL_WORLD_SIZE",
    "'JOB_COMPLETION_INDEX=0 MKERNEL_WORLD_SIZE=2', MKERNEL_RENDEZVOUS",
    "'PMIX_RANK=0', MKERNEL_WORLD_SIZE",
    "'TORCHELASTIC_RUN_ID=x RANK=0', WORLD_SIZE",
    "'OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=1',"
        + " MKERNEL_RENDEZVOUS",
  })
  void namesWhatIsMissing(String variables, String missing) {
    assertThatThrownBy(() -> Launch.detect(environment(variables.split(" "))))
        .isInstanceOf(UsageException.class)
        .hasMessageStartingWith(missing + " is not set, while ")
        .satisfies(e ->
            assertThat(((MKernelException) e).failure().remedy().orElseThrow())
                .startsWith("set " + missing + " to "));
  }

  @ParameterizedTest
  @CsvSource({
    "'MKERNEL_RANK=4 MKERNEL_WORLD_SIZE=4', MKERNEL_RANK, 4, from 0 to 3",
    "'MKERNEL_RANK=-1 MKERNEL_WORLD_SIZE=4', MKERNEL_RANK, -1, from 0 to 3",
    "'MKERNEL_RANK=one MKERNEL_WORLD_SIZE=4', MKERNEL_RANK, one, from 0 to 3",
    "'MKERNEL_RANK=0 MKERNEL_WORLD_SIZE=0', MKERNEL_WORLD_SIZE, 0, from 1 to 65536",
    "'MKERNEL_RANK=0 MKERNEL_WORLD_SIZE=2 MKERNEL_NODE=2', MKERNEL_NODE, 2, from 0 to 1",
    "'MKERNEL_RANK=0 MKERNEL_WORLD_SIZE=2 MKERNEL_RENDEZVOUS=host',"
        + " MKERNEL_RENDEZVOUS, host, host:port",
    "'MKERNEL_RANK=0 MKERNEL_WORLD_SIZE=2 MKERNEL_RENDEZVOUS=::1:80',"
        + " MKERNEL_RENDEZVOUS, ::1:80, host:port",
    "'MKERNEL_RANK=0 MKERNEL_WORLD_SIZE=2 MKERNEL_RENDEZVOUS=h:70000',"
        + " MKERNEL_RENDEZVOUS, h:70000, host:port",
    "'SLURM_PROCID=0 SLURM_STEP_ID=0 SLURM_NTASKS=2 SLURM_JOB_NODELIST=n[1-2',"
        + " SLURM_JOB_NODELIST, n[1-2, node[01-04",
  })
  void showsTheBadValueAndTheAllowedOnes(
      String variables, String variable, String value, String allowed) {
    assertThatThrownBy(() -> Launch.detect(environment(variables.split(" "))))
        .isInstanceOf(UsageException.class)
        .hasMessageContaining("%s is \"%s\"", variable, value)
        .hasMessageContaining(allowed)
        .satisfies(e -> assertThat(((MKernelException) e).failure().remedy()).isPresent());
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "RANK=0 WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4",
        "RANK=0 WORLD_SIZE=4 SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_NTASKS=4",
        "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4 MKERNEL_WORLD_SIZE=8",
      })
  void refusesContradictions(String variables) {
    assertThatThrownBy(() -> Launch.detect(environment(variables.split(" "))))
        .isInstanceOf(UsageException.class)
        .hasMessageContaining("they must be equal")
        .satisfies(e ->
            assertThat(((MKernelException) e).failure().remedy().orElseThrow())
                .contains("MKERNEL_RANK"));
  }
}
