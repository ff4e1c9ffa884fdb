package org.mkernel.cli;

/** What the command's exit codes mean. */
final class ExitCode {
  static final int DONE = 0;
  static final int WRONG = 1;
  static final int USAGE = 2;
  static final int ENVIRONMENT = 3;

  private ExitCode() {}
}
