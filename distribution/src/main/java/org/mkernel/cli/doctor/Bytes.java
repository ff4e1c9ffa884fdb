package org.mkernel.cli.doctor;

import java.util.Locale;

/** Sizes for people. */
final class Bytes {
  private Bytes() {}

  static String text(long bytes) {
    String[] units = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    double size = bytes;
    int unit = 0;
    while (size >= 1024 && unit < units.length - 1) {
      size /= 1024;
      unit++;
    }
    return size == Math.rint(size)
        ? "%d %s".formatted((long) size, units[unit])
        : String.format(Locale.ROOT, "%.1f %s", size, units[unit]);
  }
}
