package org.mkernel.cli.io;

import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileSystemException;
import java.nio.file.NoSuchFileException;

/** Words for messages: what comes from a file or a caller is made one line, and short. */
final class Text {
  private Text() {}

  /** The text with everything escaped that could break a line or a terminal. */
  static String line(String text, int limit) {
    StringBuilder line = new StringBuilder();
    for (int i = 0; i < text.length(); ) {
      if (line.length() >= limit) {
        return line.append('…').toString();
      }
      int point = text.codePointAt(i);
      i += Character.charCount(point);
      boolean odd =
          switch (Character.getType(point)) {
            case Character.CONTROL,
                Character.FORMAT,
                Character.SURROGATE,
                Character.LINE_SEPARATOR,
                Character.PARAGRAPH_SEPARATOR,
                Character.PRIVATE_USE,
                Character.UNASSIGNED ->
                true;
            default -> false;
          };
      if (odd) {
        line.append("\\u{").append(Integer.toHexString(point)).append('}');
      } else {
        line.appendCodePoint(point);
      }
    }
    return line.toString();
  }

  /** A path as a message shows it. */
  static String path(Object path) {
    return line(path.toString(), 4096);
  }

  /** A value from a file as a message shows it. */
  static String quote(String text) {
    return '"' + line(text, 80) + '"';
  }

  /** What an {@link IOException} says, without the path that the message names already. */
  static String reason(IOException e) {
    if (e instanceof NoSuchFileException) {
      return "no such file or folder";
    }
    if (e instanceof AccessDeniedException) {
      return "permission denied";
    }
    String said = e instanceof FileSystemException f ? f.getReason() : e.getMessage();
    return said == null ? e.getClass().getSimpleName() : line(said, 200);
  }
}
