package org.mkernel.check;

import java.util.List;
import org.mkernel.api.Failure;
import org.mkernel.api.UsageException;

/**
 * The verdict on a schedule.
 *
 * @param schedule its name
 * @param findings what is wrong, at most {@link #MAX_FINDINGS}
 * @param assumptions what was taken for granted
 * @param intraBytes payload of puts inside nodes, all ranks, one launch
 * @param interBytes payload of puts between nodes, all ranks, one launch
 */
public record CheckReport(
    String schedule,
    List<Finding> findings,
    List<String> assumptions,
    long intraBytes,
    long interBytes) {
  /** More findings than these are not listed. */
  public static final int MAX_FINDINGS = 20;

  /** Copies the lists. */
  public CheckReport {
    findings = List.copyOf(findings);
    assumptions = List.copyOf(assumptions);
  }

  /**
   * Whether nothing is wrong.
   *
   * @return true when all rules are proven
   */
  public boolean isProven() {
    return findings.isEmpty();
  }

  /**
   * Throws unless all rules are proven.
   *
   * @throws UsageException with the first findings
   */
  public void requireProven() {
    if (!isProven()) {
      StringBuilder text = new StringBuilder("the schedule of " + schedule + " is wrong");
      findings.stream()
          .limit(3)
          .forEach(f -> text.append("; ").append(f.rule()).append(": ").append(f.message()));
      if (findings.size() > 3) {
        text.append("; and %d more".formatted(findings.size() - 3));
      }
      throw new UsageException(
          text.toString(),
          Failure.remedy("this is a fault of the operator's planner: report it to its author")
              .withOperation(schedule));
    }
  }
}
