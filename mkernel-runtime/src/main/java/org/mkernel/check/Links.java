package org.mkernel.check;

import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/** When bytes have gone over links that carry one put after another. */
final class Links {
  private final Machine machine;
  private final int ranks;
  private final double[] sendFree;
  private final double[] receiveFree;
  private final double[] mappedFree;
  private final int[] lastSent;
  private final int[] lastMapped;
  private final double[] sent;
  private final double[] received;
  private final double[] mapped;
  private final Map<Long, double[]> pairFree = new HashMap<>();

  Links(int ranks, Machine machine) {
    this.machine = machine;
    this.ranks = ranks;
    sendFree = new double[ranks];
    receiveFree = new double[ranks];
    mappedFree = new double[ranks];
    lastSent = new int[ranks];
    lastMapped = new int[ranks];
    Arrays.fill(lastSent, Timeline.NONE);
    Arrays.fill(lastMapped, Timeline.NONE);
    sent = new double[ranks];
    received = new double[ranks];
    mapped = new double[ranks];
  }

  /** When a put over the mapped link of a rank has left it. */
  double mapped(int rank, int record, double now, double bytes, int[] behind) {
    double nanos = TaskCosts.seconds(bytes, machine.mapped().bytesPerSecond()) * 1e9;
    if (mappedFree[rank] > now) {
      behind[record] = lastMapped[rank];
    }
    lastMapped[rank] = record;
    mapped[rank] += nanos;
    mappedFree[rank] = Math.max(mappedFree[rank], now) + nanos;
    return mappedFree[rank];
  }

  /** When the last byte of a transfer arrives. */
  double wire(int from, int to, int record, double now, double bytes, int[] behind) {
    Machine.Wire wire = machine.wire();
    double send = TaskCosts.seconds(bytes, wire.sendBytesPerSecond()) * 1e9;
    double receive = TaskCosts.seconds(bytes, wire.receiveBytesPerSecond()) * 1e9;
    if (sendFree[from] > now) {
      behind[record] = lastSent[from];
    }
    lastSent[from] = record;
    sent[from] += send;
    received[to] += receive;
    sendFree[from] = Math.max(sendFree[from], now) + send;
    double end = sendFree[from];
    if (wire.pairBytesPerSecond() > 0) {
      double[] free = pairFree.computeIfAbsent((long) from * ranks + to, pair -> new double[1]);
      free[0] =
          Math.max(
              end,
              Math.max(free[0], now) + TaskCosts.seconds(bytes, wire.pairBytesPerSecond()) * 1e9);
      end = free[0];
    }
    if (receive > 0) {
      end = Math.max(end, receiveFree[to] + receive);
      receiveFree[to] = end;
    }
    return end + wire.latencyNanos();
  }

  double mostSent() {
    return Arrays.stream(sent).max().orElse(0);
  }

  double mostReceived() {
    return Arrays.stream(received).max().orElse(0);
  }

  double mostMapped() {
    return Arrays.stream(mapped).max().orElse(0);
  }
}
