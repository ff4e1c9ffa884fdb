package org.mkernel.runtime;

import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.mkernel.api.spi.ExecutionPlan.Stall;
import org.mkernel.runtime.Group.Progress;

/** How far a rank has come, as bytes. */
final class Progresses {
  private static final int MAX_STALLS = 1024;
  private static final int STALL_BYTES = 4 * Integer.BYTES + 3 * Long.BYTES;

  private Progresses() {}

  static byte[] encode(Progress progress) {
    List<Stall> stalls =
        progress.stalls().subList(0, Math.min(MAX_STALLS, progress.stalls().size()));
    ByteBuffer out = ByteBuffer.allocate(Long.BYTES + STALL_BYTES * stalls.size());
    out.putLong(progress.launched());
    for (Stall stall : stalls) {
      out.putInt(stall.rank()).putInt(stall.lane()).putInt(stall.task()).putInt(stall.signal());
      out.putLong(stall.wanted()).putLong(stall.seen()).putLong(stall.epoch());
    }
    return out.array();
  }

  /** Reads what a rank answered; what can't be read is no answer. */
  static Optional<Progress> decode(byte[] bytes) {
    ByteBuffer in = ByteBuffer.wrap(bytes);
    try {
      long launched = in.getLong();
      List<Stall> stalls = new ArrayList<>();
      while (in.hasRemaining()) {
        stalls.add(
            new Stall(
                in.getInt(),
                in.getInt(),
                in.getInt(),
                in.getInt(),
                in.getLong(),
                in.getLong(),
                in.getLong()));
      }
      return Optional.of(new Progress(launched, List.copyOf(stalls)));
    } catch (BufferUnderflowException e) {
      return Optional.empty();
    }
  }
}
