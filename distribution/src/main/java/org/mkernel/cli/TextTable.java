package org.mkernel.cli;

import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;

/** Rows of cells, each column as wide as its widest cell. */
final class TextTable {
  private static final String GAP = "  ";

  private final String indent;
  private final List<String[]> rows = new ArrayList<>();

  TextTable(String indent) {
    this.indent = indent;
  }

  /** Adds a row; the last cell sets no width. */
  void row(String... cells) {
    rows.add(cells);
  }

  void print(PrintWriter out) {
    List<Integer> widths = new ArrayList<>();
    for (String[] row : rows) {
      for (int i = 0; i < row.length - 1; i++) {
        if (i == widths.size()) {
          widths.add(0);
        }
        widths.set(i, Math.max(widths.get(i), row[i].length()));
      }
    }
    for (String[] row : rows) {
      StringBuilder line = new StringBuilder(indent);
      for (int i = 0; i < row.length; i++) {
        line.append(row[i]);
        if (i < row.length - 1) {
          line.append(" ".repeat(widths.get(i) - row[i].length())).append(GAP);
        }
      }
      out.println(line.toString().stripTrailing());
    }
  }
}
