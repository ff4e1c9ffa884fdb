package org.mkernel.cli.doctor;

import java.util.BitSet;

/** Lists of numbers as the kernel writes them: {@code 0-3,8}. */
final class CpuList {
  private static final int MOST = 1 << 16;

  private CpuList() {}

  /** The numbers of a list; what is none adds nothing. */
  static BitSet of(String list) {
    BitSet numbers = new BitSet();
    for (String part : list.strip().split(",", -1)) {
      if (part.matches("[0-9]{1,5}(-[0-9]{1,5})?")) {
        String[] ends = part.split("-", 2);
        int first = Integer.parseInt(ends[0]);
        int last = Integer.parseInt(ends[ends.length - 1]);
        if (first <= last && last < MOST) {
          numbers.set(first, last + 1);
        }
      }
    }
    return numbers;
  }
}
