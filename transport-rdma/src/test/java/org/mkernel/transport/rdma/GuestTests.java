package org.mkernel.transport.rdma;

import static org.junit.platform.engine.discovery.DiscoverySelectors.selectPackage;

import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.TagFilter;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.junit.platform.launcher.listeners.SummaryGeneratingListener;
import org.junit.platform.launcher.listeners.TestExecutionSummary;

/**
 * Runs the tests that need RDMA adapters, where Maven would be too slow: in an emulated machine.
 * Prints the totals as Surefire does. Exits with 1 unless all tests ran and passed.
 */
final class GuestTests {
  private GuestTests() {}

  /** Says what runs, so that a hang has a name. */
  private static final class Progress implements TestExecutionListener {
    private final PrintWriter out;
    private long start;

    Progress(PrintWriter out) {
      this.out = out;
    }

    @Override
    public void executionStarted(TestIdentifier test) {
      start = System.nanoTime();
    }

    @Override
    public void executionFinished(TestIdentifier test, TestExecutionResult result) {
      if (test.isTest()) {
        out.printf(
            "%s %s (%d ms)%n",
            result.getStatus(), test.getDisplayName(), (System.nanoTime() - start) / 1_000_000);
        out.flush();
      }
    }
  }

  public static void main(String[] args) {
    PrintWriter out = new PrintWriter(System.out, true, StandardCharsets.UTF_8);
    SummaryGeneratingListener totals = new SummaryGeneratingListener();
    LauncherDiscoveryRequest request =
        LauncherDiscoveryRequestBuilder.request()
            .selectors(selectPackage(GuestTests.class.getPackageName()))
            .filters(TagFilter.includeTags(args.length == 0 ? "rxe" : args[0]))
            .configurationParameter("junit.jupiter.execution.timeout.default", "3 m")
            .build();
    LauncherFactory.create().execute(request, totals, new Progress(out));
    TestExecutionSummary summary = totals.getSummary();
    summary.printFailuresTo(out, 30);
    long failures = summary.getTotalFailureCount();
    out.printf(
        "Tests run: %d, Failures: %d, Errors: 0, Skipped: %d%n",
        summary.getTestsStartedCount(), failures, summary.getTestsSkippedCount());
    out.flush();
    System.exit(failures == 0 && summary.getTestsSucceededCount() > 0 ? 0 : 1);
  }
}
