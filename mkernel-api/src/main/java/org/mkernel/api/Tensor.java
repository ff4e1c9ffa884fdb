package org.mkernel.api;

import java.lang.foreign.MemorySegment;

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
   * Copies bytes of it to the host, wherever it lies. No operation that writes it is in flight.
   *
   * @param offset the first byte, counted from {@link #address}
   * @param to where to; its size says how many bytes
   * @throws UsageException when the bytes are not all inside
   * @throws ClosedException when it was closed
   * @throws DeviceException when the device fails
   */
  void read(long offset, MemorySegment to);

  /**
   * Copies bytes of the host to it, wherever it lies. No operation that uses it is in flight.
   *
   * @param offset the first byte, counted from {@link #address}
   * @param from where from; its size says how many bytes
   * @throws UsageException when the bytes are not all inside
   * @throws ClosedException when it was closed
   * @throws DeviceException when the device fails
   */
  void write(long offset, MemorySegment from);

  /**
   * Frees memory that the rank allocated. Memory that was borrowed is left alone.
   *
   * @throws UsageException when an operation is still bound to it
   */
  @Override
  void close();
}
