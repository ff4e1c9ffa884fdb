package org.mkernel.runtime;

import java.util.List;
import org.mkernel.api.spi.Span;
import org.mkernel.api.spi.Transfer;

/**
 * The prepared transfers of a channel, in columns: where from, where to, and in which pieces. An
 * adapter moves pieces of up to 64 KiB; under an adversary they are a few cache lines, so that a
 * reader who does not wait for the flag is caught.
 */
final class EmulatedTransfers {
  private static final long PIECE = 1 << 16;
  private static final long ADVERSARIAL_PIECE = 64;
  private static final long MAX_ADVERSARIAL_PIECES = 4096;

  private final int[] peer;
  private final long[] bytes;
  private final long[] source;
  private final long[] sourcePitch;
  private final long[] target;
  private final long[] targetPitch;
  private final long[] rowBytes;
  private final long[] pieceBytes;
  private final long[] piecesPerRow;
  private final long[] pieces;
  private final long[] flag;

  EmulatedTransfers(List<Transfer> transfers, List<List<Span>> spans, boolean adversarial) {
    int count = transfers.size();
    peer = new int[count];
    bytes = new long[count];
    source = new long[count];
    sourcePitch = new long[count];
    target = new long[count];
    targetPitch = new long[count];
    rowBytes = new long[count];
    pieceBytes = new long[count];
    piecesPerRow = new long[count];
    pieces = new long[count];
    flag = new long[count];
    for (int number = 0; number < count; number++) {
      Transfer t = transfers.get(number);
      List<Span> there = spans.get(t.peer());
      peer[number] = t.peer();
      flag[number] = there.getFirst().address() + t.flagOffset();
      bytes[number] = t.bytes();
      if (t.bytes() > 0) {
        prepare(number, t, there.get(t.span()).address() + t.offset(), adversarial);
      }
    }
  }

  private void prepare(int number, Transfer t, long to, boolean adversarial) {
    boolean contiguous = t.sourcePitch() == t.rowBytes() && t.pitch() == t.rowBytes();
    long rows = contiguous ? 1 : t.rows();
    source[number] = t.source();
    sourcePitch[number] = t.sourcePitch();
    target[number] = to;
    targetPitch[number] = t.pitch();
    rowBytes[number] = contiguous ? t.bytes() : t.rowBytes();
    long piece = adversarial ? ADVERSARIAL_PIECE : PIECE;
    while (adversarial
        && piece < rowBytes[number]
        && rows * Math.ceilDiv(rowBytes[number], piece) > MAX_ADVERSARIAL_PIECES) {
      piece *= 2;
    }
    pieceBytes[number] = piece;
    piecesPerRow[number] = Math.ceilDiv(rowBytes[number], piece);
    pieces[number] = rows * piecesPerRow[number];
  }

  int count() {
    return peer.length;
  }

  int peer(int number) {
    return peer[number];
  }

  long bytes(int number) {
    return bytes[number];
  }

  long pieces(int number) {
    return pieces[number];
  }

  long flag(int number) {
    return flag[number];
  }

  /** Moves one piece and returns its bytes. */
  long move(int number, long piece) {
    long row = piece / piecesPerRow[number];
    long start = piece % piecesPerRow[number] * pieceBytes[number];
    long length = Math.min(pieceBytes[number], rowBytes[number] - start);
    RawMemory.copy(
        source[number] + row * sourcePitch[number] + start,
        target[number] + row * targetPitch[number] + start,
        length);
    return length;
  }

  /** Raises the flag, after all pieces. */
  void raise(int number, long epoch) {
    RawMemory.raise(flag[number], epoch);
  }
}
