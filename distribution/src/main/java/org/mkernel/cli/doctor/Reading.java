package org.mkernel.cli.doctor;

import java.util.Optional;
import java.util.OptionalLong;
import java.util.stream.Stream;
import org.mkernel.cli.doctor.Finding.Evidence;

/**
 * What a file says.
 *
 * @param path of the file, as the machine has it
 * @param text its first bytes; nothing when it is not there or may not be read
 */
record Reading(String path, Optional<String> text) {
  boolean isPresent() {
    return text.isPresent();
  }

  /** All of it, without blanks around it. */
  String value() {
    return text.orElse("").strip();
  }

  Stream<String> lines() {
    return text.orElse("").lines();
  }

  /** What follows some words at the start of a line. */
  Optional<String> after(String start) {
    return lines()
        .filter(line -> line.startsWith(start))
        .map(line -> line.substring(start.length()).strip())
        .findFirst();
  }

  /** Its number, when it is one. */
  OptionalLong number() {
    return number(value());
  }

  /** A number of up to 18 digits. */
  static OptionalLong number(String text) {
    return text.matches("-?[0-9]{1,18}")
        ? OptionalLong.of(Long.parseLong(text))
        : OptionalLong.empty();
  }

  Evidence evidence() {
    return new Evidence(path, text.orElse("(not there)"));
  }

  /** As evidence, one line of it. */
  Evidence evidence(String start) {
    return new Evidence(path, after(start).map(rest -> start + " " + rest).orElse("(not there)"));
  }
}
