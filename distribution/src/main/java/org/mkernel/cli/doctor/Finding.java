package org.mkernel.cli.doctor;

import java.util.List;

/**
 * What a probe found.
 *
 * @param probe the probe's name
 * @param severity how bad it is
 * @param summary what holds, in a few words
 * @param evidence what was read, and where
 * @param cause why it matters; empty where nothing is wrong
 * @param remedy what to do; empty where nothing is wrong
 */
public record Finding(
    String probe,
    Severity severity,
    String summary,
    List<Evidence> evidence,
    String cause,
    String remedy) {

  /** Copies the list. */
  public Finding {
    evidence = List.copyOf(evidence);
  }

  /**
   * Something that was read.
   *
   * @param source a file, a variable, or a command
   * @param value what it says, in one line
   */
  public record Evidence(String source, String value) {
    private static final int MOST = 200;

    /** Takes the first characters, on one line: what is shown must not steer a terminal. */
    public Evidence {
      String line = value.strip().replaceAll("\\s+", " ").replaceAll("\\p{Cntrl}", "?");
      value = line.length() > MOST ? line.substring(0, MOST) + " …" : line;
    }

    @Override
    public String toString() {
      return "%s: %s".formatted(source, value.isEmpty() ? "(nothing)" : value);
    }
  }
}
