package org.mkernel.kernels.cuda;

import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * What a kernel or a device function uses, as the assembler tells it.
 *
 * @param name its name in the cubin
 * @param entry whether it is a kernel
 * @param registers of a thread at launch; 0 for a function
 * @param sharedBytes static shared memory of a CTA
 * @param stackBytes of a thread
 * @param spillStoreBytes bytes that a thread stores to local memory for want of registers
 * @param spillLoadBytes bytes that it loads back
 */
record KernelUsage(
    String name,
    boolean entry,
    int registers,
    int sharedBytes,
    int stackBytes,
    int spillStoreBytes,
    int spillLoadBytes) {
  private static final Pattern ENTRY = Pattern.compile("Compiling entry function '([^']+)'");
  private static final Pattern FUNCTION = Pattern.compile("Function properties for (\\S+)");
  private static final Pattern FRAME =
      Pattern.compile(
          "(\\d+) bytes stack frame, (\\d+) bytes spill stores, (\\d+) bytes spill loads");
  private static final Pattern USED = Pattern.compile("Used (\\d+) registers");
  private static final Pattern SHARED = Pattern.compile("(\\d+) bytes smem");

  /** Reads what {@code ptxas -v} says. */
  static List<KernelUsage> parse(String log) {
    List<KernelUsage> all = new ArrayList<>();
    String entry = "";
    String function = "";
    int[] frame = new int[3];
    for (String line : log.lines().toList()) {
      Matcher match = ENTRY.matcher(line);
      if (match.find()) {
        entry = match.group(1);
      }
      match = FUNCTION.matcher(line);
      if (match.find()) {
        function = match.group(1);
      }
      match = FRAME.matcher(line);
      if (match.find()) {
        for (int i = 0; i < frame.length; i++) {
          frame[i] = Integer.parseInt(match.group(i + 1));
        }
        if (!function.equals(entry)) {
          all.add(new KernelUsage(function, false, 0, 0, frame[0], frame[1], frame[2]));
        }
      }
      match = USED.matcher(line);
      if (match.find()) {
        int registers = Integer.parseInt(match.group(1));
        Matcher shared = SHARED.matcher(line);
        int sharedBytes = shared.find() ? Integer.parseInt(shared.group(1)) : 0;
        all.add(new KernelUsage(entry, true, registers, sharedBytes, frame[0], frame[1], frame[2]));
      }
    }
    return all;
  }
}
