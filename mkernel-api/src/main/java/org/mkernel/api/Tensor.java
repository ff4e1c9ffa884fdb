package org.mkernel.api;

/**
 * A matrix of a rank: rows × columns of one type, rows contiguous, from a row to the next {@link
 * #pitch} bytes. Its memory is the rank's when it was allocated, the caller's when it was borrowed.
 */
public interface Tensor extends AutoCloseable {
  /**
   * The type of its elements.
   *
   * @return the type
   */
  DType dtype();

  /**
   * Its rows.
   *
   * @return at least 0
   */
  long rows();

  /**
   * Its columns.
   *
   * @return at least 0
   */
  long columns();

  /**
   * From a row to the next.
   *
   * @return bytes
   */
  long pitch();

  /**
   * Where it starts.
   *
   * @return an address of the rank's device
   * @throws ClosedException when it was closed
   */
  long address();

  /**
   * Frees memory that the rank allocated. Memory that was borrowed is left alone.
   *
   * @throws UsageException when an operation is still bound to it
   */
  @Override
  void close();
}
