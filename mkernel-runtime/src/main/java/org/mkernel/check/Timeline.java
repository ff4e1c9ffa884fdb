package org.mkernel.check;

import java.util.Arrays;

/**
 * When each task of each epoch ran, on which lane, and what it waited for, in columns. A record is
 * {@code (epoch − 1) · tasks + task}, tasks of all ranks counted through.
 */
final class Timeline {
  static final int NONE = -1;

  final int[] lane;
  final double[] claimed;
  final double[] ready;

  /** Not a number until it is. */
  final double[] done;

  /** When what it raises last was seen where it goes; for a transfer, when it arrived. */
  final double[] arrived;

  /** The record that let it start, or {@link #NONE}. */
  final int[] cause;

  /** A {@link PathStep.Reason} for {@link #cause}. */
  final byte[] reason;

  /** The record whose transfer went before and held up its own, or {@link #NONE}. */
  final int[] behind;

  Timeline(int records) {
    lane = new int[records];
    claimed = new double[records];
    ready = new double[records];
    done = new double[records];
    arrived = new double[records];
    cause = new int[records];
    reason = new byte[records];
    behind = new int[records];
    Arrays.fill(lane, NONE);
    Arrays.fill(done, Double.NaN);
    Arrays.fill(cause, NONE);
    Arrays.fill(behind, NONE);
  }
}
