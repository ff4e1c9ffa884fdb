package org.mkernel.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.PrintWriter;
import java.io.StringWriter;
import org.junit.jupiter.api.Test;

/** Tables. */
final class TextTableTest {
  @Test
  void columnsAreAsWideAsTheirWidestCell() {
    TextTable table = new TextTable("  ");
    table.row("a", "bbb", "a long last cell sets no width");
    table.row("aaaa", "", "c");
    table.row("", "b", "");
    StringWriter text = new StringWriter();
    table.print(new PrintWriter(text, true));
    assertThat(text.toString().lines())
        .containsExactly(
            "  a     bbb  a long last cell sets no width", "  aaaa       c", "        b");
  }
}
