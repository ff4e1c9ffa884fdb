package org.mkernel.api;

import java.util.List;
import java.util.Optional;

/**
 * What {@code prepare} chose and why.
 *
 * @param operator the operator
 * @param device the kind of device
 * @param intra the transport inside a node, if any traffic goes there
 * @param inter the transport between nodes, if any traffic goes there
 * @param digest the digest of the schedule, equal on all ranks
 * @param tasks tasks of all ranks
 * @param lanes lanes of this rank by role, in words
 * @param intraBytes payload bytes inside nodes, all ranks, each launch
 * @param interBytes payload bytes between nodes, all ranks, each launch
 * @param planNanos time to plan
 * @param checkNanos time to check; 0 when the verdict was known
 * @param assumptions what the checker did not prove
 */
public record OperationReport(
    String operator,
    String device,
    Optional<Choice> intra,
    Optional<Choice> inter,
    String digest,
    long tasks,
    List<String> lanes,
    long intraBytes,
    long interBytes,
    long planNanos,
    long checkNanos,
    List<String> assumptions) {

  /** Copies the lists. */
  public OperationReport {
    lanes = List.copyOf(lanes);
    assumptions = List.copyOf(assumptions);
  }

  /**
   * A transport and why it was chosen.
   *
   * @param name its name
   * @param reason why, and why the better ones are out
   * @param emulated whether it only emulates a network
   */
  public record Choice(String name, String reason, boolean emulated) {}

  @Override
  public String toString() {
    StringBuilder text = new StringBuilder();
    text.append(operator).append(" on ").append(device);
    intra.ifPresent(
        c -> text.append("\n  inside a node: ").append(c.name()).append(": ").append(c.reason()));
    inter.ifPresent(
        c -> text.append("\n  between nodes: ").append(c.name()).append(": ").append(c.reason()));
    text.append("\n  %d tasks, lanes %s".formatted(tasks, String.join(", ", lanes)));
    text.append(
        "\n  bytes each launch: %d inside nodes, %d between".formatted(intraBytes, interBytes));
    text.append(
        "\n  planned in %.1f ms, checked in %.1f ms, digest %s"
            .formatted(planNanos / 1e6, checkNanos / 1e6, digest));
    assumptions.forEach(a -> text.append("\n  assumed: ").append(a));
    return text.toString();
  }
}
