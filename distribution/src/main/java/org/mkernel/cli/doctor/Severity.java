package org.mkernel.cli.doctor;

import java.util.Locale;

/** How bad a finding is, worst first. */
public enum Severity {
  /** Something does not work. */
  ERROR,
  /** Something works, but slower or with less margin than it could. */
  WARNING,
  /** As it should be. */
  OK,
  /** Of no importance here, or not to be seen from here. */
  NOT_APPLICABLE;

  /**
   * Its name in documents.
   *
   * @return lower case, with hyphens
   */
  public String label() {
    return name().toLowerCase(Locale.ROOT).replace('_', '-');
  }
}
