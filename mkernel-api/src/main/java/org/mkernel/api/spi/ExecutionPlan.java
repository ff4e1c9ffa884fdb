package org.mkernel.api.spi;

import java.util.List;
import org.mkernel.api.schedule.Schedule;

/** What an executor is given to run one rank of one operation. */
public interface ExecutionPlan {
  /**
   * The schedule.
   *
   * @return checked, of all ranks
   */
  Schedule schedule();

  /**
   * Whose tasks to run.
   *
   * @return the rank
   */
  int rank();

  /**
   * Where a buffer lies, seen from this rank.
   *
   * @param owner the rank whose buffer it is
   * @param buffer its number
   * @return the address of slot 0, or 0 when that rank is reached by a wire or holds nothing
   */
  long buffer(int owner, int buffer);

  /**
   * From a slot of a buffer to the next.
   *
   * @param buffer its number
   * @return bytes
   */
  long slotBytes(int buffer);

  /**
   * Where the signals of a rank lie, seen from this rank.
   *
   * @param owner the rank
   * @return the address of signal 0, 8 bytes each, or 0 when that rank is reached by a wire
   */
  long signals(int owner);

  /**
   * How many lanes drain a role.
   *
   * @param role its index
   * @return at least 1
   */
  int lanes(int role);

  /**
   * The command of a put or notify that goes by wire.
   *
   * @param task the task
   * @return the number of the transfer, or −1 when its destination is mapped
   */
  int transfer(int task);

  /**
   * Where commands go.
   *
   * @return the queue of this rank
   */
  Commands commands();

  /**
   * The kernel sets for this device.
   *
   * @return in order of preference
   */
  List<KernelSet> kernels();

  /**
   * How long one wait may take.
   *
   * @return nanoseconds
   */
  long waitNanos();

  /**
   * What ends all waits of the world.
   *
   * @return shared by all ranks of this process
   */
  Abort abort();

  /**
   * Told of waits that expired, of kernels that failed, and of what ran when.
   *
   * @return the observer
   */
  Observer observer();

  /** The queue of commands of a rank. */
  interface Commands {
    /**
     * Offers a command. Never blocks; safe for use by several lanes.
     *
     * @param transfer its number
     * @param epoch the epoch of the launch
     * @return false when the queue is full: the lane waits, with its deadline, and offers again
     */
    boolean offer(int transfer, long epoch);

    /**
     * Where the queue lies, for a device whose lanes fill it themselves: pinned memory. It begins
     * with the number of commands that were taken, 8 bytes, which the host stores; from byte 384 on
     * there are {@link #capacity} slots of 8 bytes. A lane reserves position p with a counter of
     * the device, waits until p is less than the commands taken plus the capacity, and stores its
     * command into slot p mod capacity, as a release of the scope of the system. From the top, a
     * command is a bit that is set when p / capacity is even, 16 bits of the epoch, 23 bits of
     * zero, and 24 bits of the transfer.
     *
     * @return the device's address, 0 when nothing goes by wire
     */
    default long address() {
      return 0;
    }

    /**
     * How many slots it has.
     *
     * @return a power of two, 0 when nothing goes by wire
     */
    default int capacity() {
      return 0;
    }
  }

  /** Hears what an executor does. Called by lanes. */
  interface Observer {
    /**
     * A wait expired. The observer aborts the world.
     *
     * @param stall which
     */
    void expired(Stall stall);

    /**
     * A task failed. The observer aborts the world.
     *
     * @param task the task
     * @param cause why
     */
    void failed(int task, Throwable cause);

    /**
     * Whether {@link #ran} wants to be called.
     *
     * @return true while a trace is taken
     */
    boolean tracing();

    /**
     * A task ran. Times are of {@link System#nanoTime}.
     *
     * @param lane the lane
     * @param task the task
     * @param epoch the epoch
     * @param claimed when the lane claimed it
     * @param ready when its waits were met
     * @param done when its signals were raised
     */
    void ran(int lane, int task, long epoch, long claimed, long ready, long done);
  }

  /**
   * A wait that is not met.
   *
   * @param rank the rank that waits
   * @param lane its lane
   * @param task its task
   * @param signal the signal of that rank
   * @param wanted the value it waits for
   * @param seen the value it sees
   * @param epoch the epoch of the launch
   */
  record Stall(int rank, int lane, int task, int signal, long wanted, long seen, long epoch) {}
}
