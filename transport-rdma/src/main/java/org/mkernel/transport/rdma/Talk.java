package org.mkernel.transport.rdma;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.mkernel.api.Failure;
import org.mkernel.api.UnavailableException;
import org.mkernel.api.spi.Exchange;

/**
 * Rounds in which every rank either brings its part or says why it can't: so that all fail together
 * and name the one at fault, and nobody waits for a rank that gave up.
 *
 * @param rank this rank
 * @param operation what is prepared, for messages
 * @param exchange how ranks agree
 */
record Talk(int rank, String operation, Exchange exchange) {
  private static final byte FINE = 0;
  private static final byte FAILED = 1;

  /**
   * One round.
   *
   * @param part makes this rank's part
   * @return all parts, by rank
   * @throws UnavailableException when another rank failed; when this one did, what it threw
   */
  List<byte[]> round(Supplier<byte[]> part) {
    byte[] message;
    RuntimeException failed = null;
    try {
      message = message(FINE, part.get());
    } catch (RuntimeException e) {
      failed = e;
      message = message(FAILED, String.valueOf(e.getMessage()).getBytes(StandardCharsets.UTF_8));
    }
    List<byte[]> parts = gather(message, failed);
    if (failed != null) {
      throw failed;
    }
    return parts;
  }

  private List<byte[]> gather(byte[] message, @Nullable RuntimeException failed) {
    List<byte[]> parts = new ArrayList<>();
    for (byte[] answer : exchange.allGather(message)) {
      int peer = parts.size();
      byte[] rest = Arrays.copyOfRange(answer, Math.min(1, answer.length), answer.length);
      if (failed == null && (answer.length == 0 || answer[0] != FINE)) {
        throw new UnavailableException(
            "%s: rank %d can't connect by RDMA: %s"
                .formatted(operation, peer, new String(rest, StandardCharsets.UTF_8)),
            Failure.remedy("look at the failure of rank " + peer)
                .withRank(rank)
                .withPeer(peer)
                .withOperation(operation));
      }
      parts.add(rest);
    }
    return parts;
  }

  private static byte[] message(byte kind, byte[] rest) {
    byte[] message = new byte[rest.length + 1];
    message[0] = kind;
    System.arraycopy(rest, 0, message, 1, rest.length);
    return message;
  }
}
