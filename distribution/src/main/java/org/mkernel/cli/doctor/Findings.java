package org.mkernel.cli.doctor;

import java.util.ArrayList;
import java.util.List;
import org.mkernel.cli.doctor.Finding.Evidence;

/** Where a probe puts what it found. */
final class Findings {
  private final String probe;
  private final List<Finding> all = new ArrayList<>();

  Findings(String probe) {
    this.probe = probe;
  }

  void ok(String summary, Evidence... evidence) {
    all.add(new Finding(probe, Severity.OK, summary, List.of(evidence), "", ""));
  }

  void notApplicable(String why, Evidence... evidence) {
    all.add(new Finding(probe, Severity.NOT_APPLICABLE, why, List.of(evidence), "", ""));
  }

  void warning(String summary, String cause, String remedy, Evidence... evidence) {
    all.add(new Finding(probe, Severity.WARNING, summary, List.of(evidence), cause, remedy));
  }

  void error(String summary, String cause, String remedy, Evidence... evidence) {
    all.add(new Finding(probe, Severity.ERROR, summary, List.of(evidence), cause, remedy));
  }

  List<Finding> all() {
    return all;
  }
}
