package org.mkernel.runtime;

import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.mkernel.api.UsageException;

/** A fault that the emulated wire has on purpose. Transfers are counted over all operations. */
sealed interface EmulatedFault {
  /** The value of the option when nothing is to fail. */
  String NONE = "none";

  /** How faults are written. */
  String SYNTAX =
      "lost-link:FROM-TO@N, error:FROM-TO@N, overrun:RANK@N or slow:RANK:FACTOR, separated by"
          + " commas; N is the number of transfers before the fault";

  /**
   * A link falls silent: what is posted is neither delivered nor completed.
   *
   * @param from the rank that sends
   * @param to the rank that receives
   * @param after how many transfers still arrive
   */
  record LostLink(int from, int to, long after) implements EmulatedFault {}

  /**
   * A transfer ends in an error completion, and so do all that follow it on its link.
   *
   * @param from the rank that sends
   * @param to the rank that receives
   * @param after how many transfers still arrive
   */
  record ErrorCompletion(int from, int to, long after) implements EmulatedFault {}

  /**
   * The completion queue of a rank overruns: everything that it has in flight fails.
   *
   * @param rank the rank that sends
   * @param after how many completions it still sees
   */
  record Overrun(int rank, long after) implements EmulatedFault {}

  /**
   * A rank's adapter is slower than the others.
   *
   * @param rank the rank that sends
   * @param factor how many times slower, at least 1
   */
  record Slow(int rank, double factor) implements EmulatedFault {}

  /**
   * Reads the option.
   *
   * @param option its name, for messages
   * @param text its value
   * @param worldSize the number of ranks
   * @return the faults, in the order given
   * @throws UsageException when the text is not as {@link #SYNTAX} says
   */
  static List<EmulatedFault> parse(String option, String text, int worldSize) {
    List<EmulatedFault> faults = new ArrayList<>();
    if (!text.equals(NONE)) {
      for (String part : text.split(",", -1)) {
        faults.add(new Parser(option, part, worldSize).parse());
      }
    }
    return List.copyOf(faults);
  }

  /** Reads one fault. */
  final class Parser {
    private static final Pattern LINK =
        Pattern.compile("(lost-link|error):(\\d{1,9})-(\\d{1,9})@(\\d{1,18})");
    private static final Pattern OVERRUN = Pattern.compile("overrun:(\\d{1,9})@(\\d{1,18})");
    private static final Pattern SLOW =
        Pattern.compile("slow:(\\d{1,9}):(\\d{1,9}(?:\\.\\d{1,9})?)");

    private final String option;
    private final String text;
    private final int worldSize;

    private Parser(String option, String text, int worldSize) {
      this.option = option;
      this.text = text;
      this.worldSize = worldSize;
    }

    private EmulatedFault parse() {
      Matcher link = LINK.matcher(text);
      if (link.matches()) {
        int from = rank(link.group(2));
        int to = rank(link.group(3));
        if (from == to) {
          throw refused("a link has two ends");
        }
        long after = Long.parseLong(link.group(4));
        return link.group(1).equals("error")
            ? new ErrorCompletion(from, to, after)
            : new LostLink(from, to, after);
      }
      Matcher overrun = OVERRUN.matcher(text);
      if (overrun.matches()) {
        return new Overrun(rank(overrun.group(1)), Long.parseLong(overrun.group(2)));
      }
      Matcher slow = SLOW.matcher(text);
      if (slow.matches()) {
        double factor = Double.parseDouble(slow.group(2));
        if (factor < 1) {
          throw refused("the factor must be at least 1");
        }
        return new Slow(rank(slow.group(1)), factor);
      }
      throw refused("it is none that is known");
    }

    private int rank(String digits) {
      int rank = Integer.parseInt(digits);
      if (rank >= worldSize) {
        throw refused("ranks are 0 to " + (worldSize - 1));
      }
      return rank;
    }

    private UsageException refused(String why) {
      return new UsageException(
          "option %s has the fault \"%s\": %s; faults are %s".formatted(option, text, why, SYNTAX));
    }
  }
}
