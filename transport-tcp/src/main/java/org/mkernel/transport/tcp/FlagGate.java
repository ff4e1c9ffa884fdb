package org.mkernel.transport.tcp;

import java.io.IOException;

/**
 * Raises a flag in the order of epochs. The transfers of neighbouring epochs may come by different
 * connections, the later one first: whoever sees the flag at an epoch must see the bytes of that
 * epoch and of all before.
 */
final class FlagGate {
  private final long flag;
  private long raised;

  /** Bit i: epoch raised + 1 + i is here, and waits for an earlier one. */
  private long waiting;

  FlagGate(long flag) {
    this.flag = flag;
  }

  void complete(long epoch) throws IOException {
    long ahead = epoch - raised - 1;
    if (ahead < 0 || ahead >= Long.SIZE) {
      throw new IOException(
          "epoch %d came while %d was the last that was complete".formatted(epoch, raised));
    }
    waiting |= 1L << ahead;
    if (ahead > 0) {
      return;
    }
    int done = Long.numberOfTrailingZeros(~waiting);
    raised += done;
    waiting = done == Long.SIZE ? 0 : waiting >>> done;
    Memory.raise(flag, raised);
  }
}
