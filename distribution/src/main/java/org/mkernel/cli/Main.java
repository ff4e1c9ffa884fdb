package org.mkernel.cli;

import org.mkernel.api.Config;

/** Starts the command. The only place that ends the virtual machine. */
public final class Main {
  private Main() {}

  /**
   * Runs the command and exits with its code.
   *
   * @param args the arguments
   */
  public static void main(String[] args) {
    System.exit(new Cli(Config.fromEnvironment(), System.out, System.err).execute(args));
  }
}
