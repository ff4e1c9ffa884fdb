package org.mkernel.api;

import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;

/**
 * Where something failed and what to do about it: what an {@link MKernelException} carries besides
 * its message, so that a program need not parse text.
 *
 * @param rank the rank that reports
 * @param peer the rank that is to blame, as far as it is known
 * @param operation the operation, by name
 * @param task the task in words
 * @param nativeCode the code of the native library that failed
 * @param remedy what the reader can do
 */
public record Failure(
    OptionalInt rank,
    OptionalInt peer,
    Optional<String> operation,
    Optional<String> task,
    OptionalLong nativeCode,
    Optional<String> remedy) {

  /** Nothing known. */
  public static final Failure UNKNOWN =
      new Failure(
          OptionalInt.empty(),
          OptionalInt.empty(),
          Optional.empty(),
          Optional.empty(),
          OptionalLong.empty(),
          Optional.empty());

  /**
   * Nothing known but a remedy.
   *
   * @param remedy what the reader can do
   * @return the failure
   */
  public static Failure remedy(String remedy) {
    return new Failure(
        OptionalInt.empty(),
        OptionalInt.empty(),
        Optional.empty(),
        Optional.empty(),
        OptionalLong.empty(),
        Optional.of(remedy));
  }

  /**
   * This failure with the rank that reports it.
   *
   * @param rank the rank
   * @return a copy
   */
  public Failure withRank(int rank) {
    return new Failure(OptionalInt.of(rank), peer, operation, task, nativeCode, remedy);
  }

  /**
   * This failure with the rank to blame.
   *
   * @param peer the rank
   * @return a copy
   */
  public Failure withPeer(int peer) {
    return new Failure(rank, OptionalInt.of(peer), operation, task, nativeCode, remedy);
  }

  /**
   * This failure with the operation.
   *
   * @param operation its name
   * @return a copy
   */
  public Failure withOperation(String operation) {
    return new Failure(rank, peer, Optional.of(operation), task, nativeCode, remedy);
  }

  /**
   * This failure with the task.
   *
   * @param task the task in words
   * @return a copy
   */
  public Failure withTask(String task) {
    return new Failure(rank, peer, operation, Optional.of(task), nativeCode, remedy);
  }

  /**
   * This failure with the code of a native library.
   *
   * @param nativeCode the code
   * @return a copy
   */
  public Failure withNativeCode(long nativeCode) {
    return new Failure(rank, peer, operation, task, OptionalLong.of(nativeCode), remedy);
  }
}
