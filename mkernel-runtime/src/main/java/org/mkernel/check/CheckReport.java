package org.mkernel.check;

import java.util.List;
import org.mkernel.api.Failure;
import org.mkernel.api.UsageException;

/**
 * The verdict on a schedule.
 *
 * @param schedule its name
 * @param findings what is wrong, at most {@link #MAX_FINDINGS}
 * @param claims every rule, in the order of {@link Finding.Rule}, then what is assumed and what is
 *     checked at run time
 * @param intraBytes payload of puts inside nodes, all ranks, one launch; 0 when something is wrong
 * @param interBytes payload of puts between nodes, all ranks, one launch; 0 when something is wrong
 */
public record CheckReport(
    String schedule, List<Finding> findings, List<Claim> claims, long intraBytes, long interBytes) {
  /** More findings than these are not listed. */
  public static final int MAX_FINDINGS = 20;

  /** Copies the lists. */
  public CheckReport {
    findings = List.copyOf(findings);
    claims = List.copyOf(claims);
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
   * What was taken for granted.
   *
   * @return the statements of the claims that are assumed
   */
  public List<String> assumptions() {
    return claims.stream()
        .filter(claim -> claim.verdict() == Claim.Verdict.ASSUMED)
        .map(Claim::statement)
        .toList();
  }

  /**
   * The verdict on a rule.
   *
   * @param rule the rule
   * @return proven, broken or unknown
   */
  public Claim.Verdict verdict(Finding.Rule rule) {
    return claims.get(rule.ordinal()).verdict();
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
