package org.mkernel.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.mkernel.api.Config;

/** What holds for every command: exit codes, and words for what is wrong. */
final class CliTest {
  private static final String GEMM = "run all-gather-gemm --m 8 --n 8 --k 8 ";

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        "nope",
        "--bogus",
        "run",
        "run nope",
        "run --bogus",
        "plan",
        "plan nope",
        "info x",
        "info --bogus",
        "plan all-gather-gemm --verify",
        "plan all-gather-gemm --m 0",
        GEMM + "x",
        GEMM + "--bogus",
        GEMM + "--nodes",
        GEMM + "--nodes x",
        GEMM + "--nodes 0",
        GEMM + "--nodes -1",
        GEMM + "--nodes 2 --nodes 3",
        GEMM + "--ranks-per-node 100000",
        "run all-gather-gemm --m 0",
        "run all-gather-gemm --k -3",
        "run all-gather-gemm --n 99999999999999999999",
        "run all-gather-gemm --m 9223372036854775807 --k 9223372036854775807",
        GEMM + "--dtype f8",
        GEMM + "--epilogue tanh",
        GEMM + "--bias=maybe",
        GEMM + "--chunk-rows=-1",
        GEMM + "--tile-rows=x",
        GEMM + "--iterations 0",
        GEMM + "--iterations x",
        GEMM + "--seed x",
        GEMM + "--deadline never",
        GEMM + "--deadline -1",
        GEMM + "--lanes compute",
        GEMM + "--lanes compute=x",
        GEMM + "--lanes compute=0",
        GEMM + "-o nope=1",
        GEMM + "-o emulated.nope=1",
        GEMM + "-o emulated.fault=lost-link",
        GEMM + "-o emulated.bandwidth=fast",
        GEMM + "--input",
        GEMM + "--input a",
        GEMM + "--input z=x.npy",
        GEMM + "--input c=x.npy",
        GEMM + "--input a=/no/such/file.npy",
        GEMM + "--input a=/dev/zero.txt",
        GEMM + "--output x.txt",
        GEMM + "--output /no/such/folder/x.npy",
        GEMM + "--dtype bf16 --output x.npy",
        GEMM + "--trace /no/such/folder/x.json",
        GEMM + "--trace /dev/null"
      })
  void badUsageIsOneLineAndExitCodeTwo(String line) {
    CommandRun run = CommandRun.line(line);
    assertThat(run.err()).startsWith("mkernel: ").doesNotContain("Exception").hasLineCount(1);
    assertThat(run.out()).isEmpty();
    assertThat(run.code()).isEqualTo(ExitCode.USAGE);
  }

  @Test
  void badUsageNamesTheValueAndTheAllowedOnes() {
    assertThat(CommandRun.line(GEMM + "--dtype f8").err()).contains("\"f8\"", "f32, f16, bf16");
    assertThat(CommandRun.line("run nope").err()).contains("\"nope\"", "all-gather-gemm");
    assertThat(CommandRun.line("frob").err()).contains("\"frob\"", "info, run, plan");
    assertThat(CommandRun.line(GEMM + "--bogus").err())
        .contains("--bogus", "mkernel run all-gather-gemm --help");
    assertThat(CommandRun.line(GEMM + "--iterations 0").err()).contains("0", "at least 1");
    assertThat(CommandRun.line(GEMM + "--input z=x.npy").err()).contains("\"z\"", "[a, b]");
  }

  @ParameterizedTest
  @ValueSource(strings = {"--help", "--version", "run --help", "info", "plan all-gather --m 4"})
  void whatIsDoneIsExitCodeZeroAndSilentOnStandardError(String line) {
    CommandRun run = CommandRun.line(line);
    assertThat(run.code()).isEqualTo(ExitCode.DONE);
    assertThat(run.err()).isEmpty();
    assertThat(run.out()).isNotBlank();
  }

  @Test
  void aWrongAnswerIsExitCodeOne() {
    CommandRun run = CommandRun.of("run", OffByOne.NAME, "--m", "40", "--k", "3");
    assertThat(run.code()).isEqualTo(ExitCode.WRONG);
    assertThat(run.out()).contains("WRONG: 160 of 480 elements, largest error 1.00");
    assertThat(CommandRun.of("run", OffByOne.NAME, "--m", "40", "--json").json())
        .containsEntry("verified", false)
        .containsEntry("wrong", 160L);
    assertThat(CommandRun.of("run", OffByOne.NAME, "--m", "40", "--no-verify").code())
        .isEqualTo(ExitCode.DONE);
  }

  @ParameterizedTest
  @ValueSource(strings = {"lost-link:0-1@2", "error:0-1@2", "overrun:0@2"})
  void aFailureOfCommunicationIsExitCodeThreeAndNamesTheRank(String fault) {
    CommandRun run =
        CommandRun.line(
            "run all-gather-gemm --m 64 --n 8 --k 8 --ranks-per-node 1 --deadline 0.3 -o"
                + " emulated.fault="
                + fault);
    assertThat(run.code()).isEqualTo(ExitCode.ENVIRONMENT);
    assertThat(run.out()).isEmpty();
    assertThat(run.err()).contains("all-gather-gemm", "rank 0").doesNotContain("Exception");
  }

  @Test
  void aSlowRankIsNoFailure() {
    assertThat(CommandRun.line(GEMM + "-o emulated.fault=slow:0:3").code()).isZero();
  }

  @Test
  void outputThatCannotBeWrittenIsExitCodeThree() {
    OutputStream full =
        new OutputStream() {
          @Override
          public void write(int b) throws IOException {
            throw new IOException("No space left on device");
          }
        };
    OutputStream err = new java.io.ByteArrayOutputStream();
    Cli cli = new Cli(Config.defaults(), new PrintStream(full), new PrintStream(err));
    assertThat(cli.execute("info")).isEqualTo(ExitCode.ENVIRONMENT);
    assertThat(err.toString()).contains("standard output cannot be written").hasLineCount(1);
  }

  @Test
  void helpShowsTheOperatorsOwnOptionsFirst() {
    assertThat(CommandRun.of("run", "all-gather-gemm", "--help").out())
        .containsSubsequence("--m=", "--n=", "--k=", "--epilogue=", "--nodes=", "--json");
  }
}
