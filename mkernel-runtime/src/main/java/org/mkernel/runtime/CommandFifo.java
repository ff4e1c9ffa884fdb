package org.mkernel.runtime;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import org.mkernel.api.UsageException;

/**
 * The queue of commands of a rank, in plain memory so that a device can fill it: many producers,
 * one consumer. A producer reserves a position and publishes its command with one 8-byte release
 * store; the lap bit of the slot says that it is full. Neither side ever blocks here. All state is
 * in the memory, so that a loop in native code can take a side over.
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

  /** What {@link #peek} returns when there is no command. A command's lap bit is clear there. */
  static final long NONE = -1;

  private static final VarHandle LONG =
      ValueLayout.JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN).varHandle();

  private final MemorySegment memory;
  private final int capacity;
  private final int lapShift;

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
   * @param memory {@link #bytes} of native memory at a multiple of 8; zeroed, or that of a queue of
   *     the same capacity, which goes on
   * @param capacity slots, a power of two from 2
   * @throws UsageException when the memory or the capacity does not fit
   */
  CommandFifo(MemorySegment memory, int capacity) {
    long needed = bytes(capacity);
    if (memory.byteSize() < needed) {
      throw new UsageException(
          "a FIFO of %d slots in %d bytes; it needs %d"
              .formatted(capacity, memory.byteSize(), needed));
    }
    if (!memory.isNative() || memory.address() % Long.BYTES != 0) {
      throw new UsageException(
          "a FIFO in %s; it needs native memory at a multiple of %d".formatted(memory, Long.BYTES));
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
   * The next command, which stays at the head. For the consumer's thread.
   *
   * @return it, with its lap bit clear, or {@link #NONE}
   */
  long peek() {
    return at(consumed());
  }

  /**
   * Consumes the command at the head. For the consumer's thread.
   *
   * @throws IllegalStateException when there is none
   */
  void advance() {
    long head = consumed();
    if (at(head) == NONE) {
      throw new IllegalStateException("no command at position %d".formatted(head));
    }
    LONG.setRelease(memory, (long) HEAD_OFFSET, head + 1);
  }

  /**
   * Hands commands to the consumer, in order, each one consumed only once it was accepted: one that
   * the handler refuses, or throws at, is the next one of the next call. For the consumer's thread.
   *
   * @param handler takes them; must not use this queue
   * @param limit the most to take
   * @return how many were taken
   */
  int drain(Handler handler, int limit) {
    long head = consumed();
    int taken = 0;
    while (taken < limit) {
      long command = at(head);
      if (command == NONE || !handler.accept(command)) {
        break;
      }
      head++;
      taken++;
      LONG.setRelease(memory, (long) HEAD_OFFSET, head);
    }
    return taken;
  }

  /**
   * Positions consumed. Kept in the memory alone: as a field it would share a line with what
   * producers read of this object.
   */
  private long consumed() {
    return (long) LONG.get(memory, (long) HEAD_OFFSET);
  }

  private long at(long position) {
    long command = (long) LONG.getAcquire(memory, slot(position));
    return (command & Command.LAP) == lap(position) ? command & ~Command.LAP : NONE;
  }

  private long slot(long position) {
    return SLOTS_OFFSET + 8L * (position & (capacity - 1));
  }

  /** The lap bit of a full slot: set on even laps, so that zeroed memory is empty. */
  private long lap(long position) {
    return ((position >>> lapShift) & 1) == 0 ? Command.LAP : 0;
  }
}
