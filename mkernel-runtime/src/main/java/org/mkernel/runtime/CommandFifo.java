package org.mkernel.runtime;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import org.mkernel.api.UsageException;

/**
 * The queue of commands of a rank, in plain memory so that a device can fill it: many producers,
 * one consumer. A producer reserves a position and publishes its command with one 8-byte release
 * store; the lap bit of the slot says that it is full. Neither side ever blocks here.
 *
 * <pre>
 *   offset 0     head: positions consumed, stored by the consumer
 *   offset 128   tail: positions reserved by producers
 *   offset 256   what producers know of the head
 *   offset 384   slots of 8 bytes
 * </pre>
 */
final class CommandFifo {
  static final int HEAD_OFFSET = 0;
  static final int TAIL_OFFSET = 128;
  static final int CACHED_HEAD_OFFSET = 256;
  static final int SLOTS_OFFSET = 384;

  private static final VarHandle LONG =
      ValueLayout.JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN).varHandle();

  private final MemorySegment memory;
  private final int capacity;
  private final int lapShift;
  private long head;

  /** Takes a command, or refuses it for now. */
  interface Handler {
    /**
     * Takes a command.
     *
     * @param command the command
     * @return false when it can't be taken now: it stays at the head
     */
    boolean accept(long command);
  }

  /**
   * Lays a queue over memory.
   *
   * @param memory zeroed, {@link #bytes} long
   * @param capacity slots, a power of two from 2
   */
  CommandFifo(MemorySegment memory, int capacity) {
    long needed = bytes(capacity);
    if (memory.byteSize() < needed) {
      throw new UsageException(
          "a FIFO of %d slots in %d bytes; it needs %d"
              .formatted(capacity, memory.byteSize(), needed));
    }
    this.memory = memory;
    this.capacity = capacity;
    this.lapShift = Integer.numberOfTrailingZeros(capacity);
  }

  /**
   * The memory that a queue needs.
   *
   * @param capacity slots, a power of two from 2
   * @return bytes
   */
  static long bytes(int capacity) {
    if (capacity < 2 || Integer.bitCount(capacity) != 1) {
      throw new UsageException(
          "a FIFO of %d slots; allowed are powers of two from 2 to 2^30".formatted(capacity));
    }
    return SLOTS_OFFSET + 8L * capacity;
  }

  int capacity() {
    return capacity;
  }

  /**
   * Offers a command. Safe for use by several threads.
   *
   * @param command its lap bit is ignored
   * @return false when the queue is full
   */
  boolean offer(long command) {
    long tail;
    do {
      tail = (long) LONG.getVolatile(memory, (long) TAIL_OFFSET);
      long known = (long) LONG.getAcquire(memory, (long) CACHED_HEAD_OFFSET);
      if (tail - known >= capacity) {
        known = (long) LONG.getAcquire(memory, (long) HEAD_OFFSET);
        if (tail - known >= capacity) {
          return false;
        }
        LONG.setRelease(memory, (long) CACHED_HEAD_OFFSET, known);
      }
    } while (!LONG.compareAndSet(memory, (long) TAIL_OFFSET, tail, tail + 1));
    LONG.setRelease(memory, slot(tail), (command & ~Command.LAP) | lap(tail));
    return true;
  }

  /**
   * Hands commands to the consumer, in order, each one consumed only once it was accepted. For one
   * thread.
   *
   * @param handler takes them
   * @param limit the most to take
   * @return how many were taken
   */
  int drain(Handler handler, int limit) {
    int taken = 0;
    while (taken < limit) {
      long command = (long) LONG.getAcquire(memory, slot(head));
      if ((command & Command.LAP) != lap(head) || !handler.accept(command & ~Command.LAP)) {
        break;
      }
      head++;
      taken++;
      LONG.setRelease(memory, (long) HEAD_OFFSET, head);
    }
    return taken;
  }

  private long slot(long position) {
    return SLOTS_OFFSET + 8L * (position & (capacity - 1));
  }

  /** The lap bit of a full slot: set on even laps, so that zeroed memory is empty. */
  private long lap(long position) {
    return ((position >>> lapShift) & 1) == 0 ? Command.LAP : 0;
  }
}
