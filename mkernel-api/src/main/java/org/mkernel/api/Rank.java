package org.mkernel.api;

import java.util.Optional;
import org.mkernel.api.schedule.Topology;
import org.mkernel.api.spi.Exchange;

/** One participant, used by one thread at a time. */
public interface Rank {
  /**
   * Its number.
   *
   * @return 0 … size − 1
   */
  int index();

  /**
   * The number of ranks of its world.
   *
   * @return at least 1
   */
  int size();

  /**
   * Its world.
   *
   * @return which rank is where
   */
  Topology topology();

  /**
   * Allocates a zeroed tensor on the rank's device.
   *
   * @param dtype type of its elements
   * @param rows rows, at least 0
   * @param columns columns, at least 0
   * @return the tensor; closed with the world at the latest
   */
  Tensor allocate(DType dtype, long rows, long columns);

  /**
   * Uses memory of the caller, rows contiguous. It must outlive every operation bound to it.
   *
   * @param address where it starts, aligned to the type
   * @param dtype type of its elements
   * @param rows rows, at least 0
   * @param columns columns, at least 0
   * @return the tensor
   */
  default Tensor borrow(long address, DType dtype, long rows, long columns) {
    return borrow(address, dtype, rows, columns, Math.multiplyExact(columns, dtype.bytes()));
  }

  /**
   * Uses memory of the caller. It must outlive every operation bound to it.
   *
   * @param address where it starts, aligned to the type
   * @param dtype type of its elements
   * @param rows rows, at least 0
   * @param columns columns, at least 0
   * @param pitch bytes from a row to the next
   * @return the tensor
   */
  Tensor borrow(long address, DType dtype, long rows, long columns, long pitch);

  /**
   * Opens a stopwatch for what runs on the rank's device.
   *
   * @return it, to be closed before the world; empty when the device has none, as the host: there
   *     the clock of the caller tells as much
   */
  Optional<Stopwatch> stopwatch();

  /**
   * Prepares an operation: plans, checks, registers memory and connects. Collective; it does all
   * that can block or allocate and ends in a barrier.
   *
   * @param collective operator, operands and options
   * @return the operation; closed with the world at the latest
   * @throws UsageException when an operand or option is bad
   * @throws MismatchException when the ranks do not agree
   * @throws UnavailableException when there is no such operator, kernel or transport
   */
  Operation prepare(Collective collective);

  /**
   * How ranks agree outside of operations, for what is small: at most 16 MiB from each rank, and 64
   * MiB in all, divided by the number of ranks. Collective, as {@link #prepare} is.
   *
   * @return an all-gather of bytes
   */
  Exchange exchange();

  /**
   * Why the world is dead, also when nobody awaited the launch that failed.
   *
   * @return the cause, empty while it lives
   */
  Optional<MKernelException> failure();
}
