package org.mkernel.cli.io;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;

/**
 * An open file, for reading headers.
 *
 * @param channel the file
 * @param size its size when it was opened
 */
record Source(FileChannel channel, long size) {

  /** Copies a range that lies inside the file to the heap. */
  byte[] bytes(long position, int count) throws IOException {
    if (position < 0 || count < 0 || count > size - position) {
      throw new IllegalArgumentException(
          "bytes %d + %d of a file of %d".formatted(position, count, size));
    }
    ByteBuffer bytes = ByteBuffer.allocate(count);
    while (bytes.hasRemaining()) {
      if (channel.read(bytes, position + bytes.position()) < 0) {
        throw new EOFException("it became shorter while it was read");
      }
    }
    return bytes.array();
  }
}
