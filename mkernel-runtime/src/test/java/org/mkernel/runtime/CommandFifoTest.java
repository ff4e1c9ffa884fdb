package org.mkernel.runtime;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestReporter;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.mkernel.api.UsageException;

@SuppressWarnings("ThreadPriorityCheck") // Producers and consumer may share a processor.
final class CommandFifoTest {
  private final Arena arena = Arena.ofShared();

  @AfterEach
  void free() {
    arena.close();
  }

  private MemorySegment memory(int capacity) {
    return arena.allocate(CommandFifo.bytes(capacity), 128);
  }

  private CommandFifo fifo(int capacity) {
    return new CommandFifo(memory(capacity), capacity);
  }

  private static List<Long> drain(CommandFifo fifo, int limit) {
    List<Long> seen = new ArrayList<>();
    assertThat(fifo.drain(seen::add, limit)).isEqualTo(seen.size());
    return seen;
  }

  @Test
  void zeroCommandIsACommand() {
    CommandFifo fifo = fifo(4);
    assertThat(Command.encode(0, 0, 65536)).isZero();
    for (int lap = 0; lap < 5; lap++) {
      assertThat(drain(fifo, 9)).isEmpty();
      assertThat(fifo.peek()).isEqualTo(CommandFifo.NONE);
      for (int i = 0; i < 4; i++) {
        assertThat(fifo.offer(0)).isTrue();
      }
      assertThat(fifo.offer(0)).isFalse();
      assertThat(fifo.peek()).isZero();
      assertThat(drain(fifo, 9)).containsExactly(0L, 0L, 0L, 0L);
    }
  }

  @Test
  void commandsWithEveryBitSetAreCommands() {
    CommandFifo fifo = fifo(2);
    for (int i = 0; i < 9; i++) {
      assertThat(fifo.offer(-1)).isTrue();
      assertThat(fifo.peek()).isEqualTo(Long.MAX_VALUE);
      assertThat(drain(fifo, 9)).containsExactly(Long.MAX_VALUE);
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 4, 64})
  void orderHoldsOverLapsAtEveryFill(int capacity) {
    for (int fill = 1; fill <= capacity; fill++) {
      CommandFifo fifo = fifo(capacity);
      List<Long> offered = new ArrayList<>();
      List<Long> seen = new ArrayList<>();
      while (seen.size() < 5 * capacity) {
        for (int i = 0; i < fill; i++) {
          assertThat(fifo.offer(offered.size())).isTrue();
          offered.add((long) offered.size());
        }
        seen.addAll(drain(fifo, capacity + 1));
        assertThat(seen).isEqualTo(offered);
      }
    }
  }

  @Test
  void fullQueueRefusesUntilSlowConsumerTakesOne() {
    CommandFifo fifo = fifo(8);
    for (int i = 0; i < 8; i++) {
      assertThat(fifo.offer(i)).isTrue();
    }
    for (int i = 8; i < 40; i++) {
      assertThat(fifo.offer(1000)).isFalse();
      assertThat(drain(fifo, 1)).containsExactly(i - 8L);
      assertThat(fifo.offer(i)).isTrue();
    }
    assertThat(fifo.offer(1000)).isFalse();
    assertThat(drain(fifo, 99)).containsExactly(32L, 33L, 34L, 35L, 36L, 37L, 38L, 39L);
    assertThat(drain(fifo, 99)).isEmpty();
  }

  @Test
  void refusedCommandStaysAtTheHead() {
    CommandFifo fifo = fifo(4);
    for (int i = 0; i < 4; i++) {
      assertThat(fifo.offer(i)).isTrue();
    }
    List<Long> asked = new ArrayList<>();
    assertThat(fifo.drain(command -> asked.add(command) && command != 2, 9)).isEqualTo(2);
    assertThat(fifo.drain(command -> asked.add(command) && command != 2, 9)).isZero();
    assertThat(asked).containsExactly(0L, 1L, 2L, 2L);
    assertThat(fifo.offer(4)).isTrue();
    assertThat(fifo.offer(5)).isTrue();
    assertThat(fifo.offer(6)).isFalse();
    assertThat(drain(fifo, 9)).containsExactly(2L, 3L, 4L, 5L);
  }

  @Test
  void commandThatTheHandlerThrowsAtStays() {
    CommandFifo fifo = fifo(4);
    for (int i = 0; i < 3; i++) {
      assertThat(fifo.offer(i)).isTrue();
    }
    CommandFifo.Handler failing =
        command -> {
          if (command == 1) {
            throw new IllegalArgumentException("for the test");
          }
          return true;
        };
    assertThatThrownBy(() -> fifo.drain(failing, 9)).hasMessage("for the test");
    assertThat(drain(fifo, 9)).containsExactly(1L, 2L);
  }

  @Test
  void limitHolds() {
    CommandFifo fifo = fifo(4);
    for (int i = 0; i < 4; i++) {
      assertThat(fifo.offer(i)).isTrue();
    }
    assertThat(drain(fifo, 0)).isEmpty();
    assertThat(drain(fifo, 3)).containsExactly(0L, 1L, 2L);
    assertThat(drain(fifo, 3)).containsExactly(3L);
  }

  @Test
  void peekLeavesAndAdvanceTakes() {
    CommandFifo fifo = fifo(2);
    assertThatThrownBy(fifo::advance)
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("no command at position 0");
    for (long i = 0; i < 7; i++) {
      assertThat(fifo.offer(i)).isTrue();
      assertThat(fifo.peek()).isEqualTo(i);
      assertThat(fifo.peek()).isEqualTo(i);
      fifo.advance();
      assertThat(fifo.peek()).isEqualTo(CommandFifo.NONE);
    }
    assertThatThrownBy(fifo::advance).hasMessage("no command at position 7");
  }

  @Test
  void anotherViewOfTheMemoryGoesOn() {
    MemorySegment memory = memory(4);
    CommandFifo first = new CommandFifo(memory, 4);
    for (int i = 0; i < 3; i++) {
      assertThat(first.offer(i)).isTrue();
    }
    assertThat(drain(first, 2)).containsExactly(0L, 1L);
    CommandFifo second = new CommandFifo(memory, 4);
    for (int i = 3; i < 6; i++) {
      assertThat(second.offer(i)).isTrue();
    }
    assertThat(second.offer(6)).isFalse();
    assertThat(drain(second, 2)).containsExactly(2L, 3L);
    assertThat(drain(first, 9)).containsExactly(4L, 5L);
  }

  /** Device code writes the same bytes. */
  @Test
  void memoryIsLaidOutAsDevicesSeeIt() {
    MemorySegment memory = memory(2);
    CommandFifo fifo = new CommandFifo(memory, 2);
    assertThat(memory.byteSize()).isEqualTo(384 + 16);
    assertThat(fifo.offer(5)).isTrue();
    assertThat(fifo.offer(6)).isTrue();
    assertThat(drain(fifo, 1)).containsExactly(5L);
    assertThat(fifo.offer(7)).isTrue();
    assertThat(memory.get(ValueLayout.JAVA_LONG, 0)).isEqualTo(1);
    assertThat(memory.get(ValueLayout.JAVA_LONG, 128)).isEqualTo(3);
    assertThat(memory.get(ValueLayout.JAVA_LONG, 256)).isEqualTo(1);
    assertThat(memory.get(ValueLayout.JAVA_LONG, 384)).isEqualTo(7);
    assertThat(memory.get(ValueLayout.JAVA_LONG, 392)).isEqualTo(6 | Long.MIN_VALUE);
  }

  /** A producer that reserved a slot and was then held up hides what comes after, for a while. */
  @Test
  void reservedSlotHoldsBackLaterOnes() {
    MemorySegment memory = memory(4);
    CommandFifo fifo = new CommandFifo(memory, 4);
    memory.set(ValueLayout.JAVA_LONG, CommandFifo.TAIL_OFFSET, 1);
    assertThat(fifo.offer(8)).isTrue();
    assertThat(drain(fifo, 9)).isEmpty();
    memory.set(ValueLayout.JAVA_LONG, CommandFifo.SLOTS_OFFSET, 7 | Command.LAP);
    assertThat(drain(fifo, 9)).containsExactly(7L, 8L);
  }

  @ParameterizedTest
  @ValueSource(ints = {Integer.MIN_VALUE, -4, -1, 0, 1, 3, 6, 12, 1000, Integer.MAX_VALUE})
  void capacityThatIsNoPowerOfTwoIsRefused(int capacity) {
    String message =
        "a FIFO of %d slots; allowed are powers of two from 2 to 2^30".formatted(capacity);
    assertThatThrownBy(() -> CommandFifo.bytes(capacity))
        .isInstanceOf(UsageException.class)
        .hasMessage(message);
    MemorySegment memory = arena.allocate(1 << 16, 128);
    assertThatThrownBy(() -> new CommandFifo(memory, capacity))
        .isInstanceOf(UsageException.class)
        .hasMessage(message);
  }

  @Test
  void largestCapacityIsCounted() {
    assertThat(CommandFifo.bytes(1 << 30)).isEqualTo(384 + (8L << 30));
  }

  @Test
  void memoryThatDoesNotFitIsRefused() {
    MemorySegment memory = arena.allocate(CommandFifo.bytes(4) + 8, 128);
    assertThatCode(() -> new CommandFifo(memory.asSlice(8), 4)).doesNotThrowAnyException();
    assertThatThrownBy(() -> new CommandFifo(memory.asSlice(0, 415), 4))
        .isInstanceOf(UsageException.class)
        .hasMessage("a FIFO of 4 slots in 415 bytes; it needs 416");
    assertThatThrownBy(() -> new CommandFifo(memory.asSlice(4), 4))
        .isInstanceOf(UsageException.class)
        .hasMessageContaining("it needs native memory at a multiple of 8");
    assertThatThrownBy(() -> new CommandFifo(MemorySegment.ofArray(new long[99]), 4))
        .isInstanceOf(UsageException.class)
        .hasMessageContaining("it needs native memory at a multiple of 8");
  }

  @Test
  void commandsAllocateNothing() throws Exception {
    CommandFifo fifo = fifo(64);
    CommandFifo.Handler handler = command -> command >= 0;
    Allocation allocation = new Allocation();
    pass(fifo, handler, 20_000);
    long before = allocation.ofThisThread();
    pass(fifo, handler, 20_000);
    // Less than an object for each hundred commands: what the measurement itself takes.
    assertThat(allocation.ofThisThread() - before).isLessThan(20_000 * 16 / 100);
  }

  private static void pass(CommandFifo fifo, CommandFifo.Handler handler, int commands) {
    for (int i = 0; i < commands; i++) {
      if (!fifo.offer(i) || fifo.drain(handler, 2) != 1) {
        throw new AssertionError("command " + i);
      }
    }
  }

  @ParameterizedTest
  @CsvSource({"2, 1, 200000", "2, 2, 200000", "16, 3, 2000000", "1024, 2, 2000000"})
  void nothingIsLostDoubledOrReordered(int capacity, int producers, long commands)
      throws Exception {
    stress(capacity, producers, commands, 0);
  }

  @Test
  void nothingIsLostBeforeASlowConsumer() throws Exception {
    stress(8, 2, 20_000, 1_000);
  }

  @Test
  @Tag("slow")
  void hundredMillionCommandsPass(TestReporter reporter) throws Exception {
    long commands = 100_000_000;
    long nanos = stress(4096, 2, commands, 0);
    reporter.publishEntry("commands per second", Long.toString(commands * 1_000_000_000L / nanos));
  }

  /**
   * Sends numbered commands from several threads to this one.
   *
   * @param pauseNanos how long the consumer sleeps when it found something
   * @return nanoseconds
   */
  private long stress(int capacity, int producers, long commands, long pauseNanos)
      throws Exception {
    CommandFifo fifo = fifo(capacity);
    AtomicBoolean stop = new AtomicBoolean();
    Recorder recorder = new Recorder(producers);
    List<Future<Long>> sent = new ArrayList<>();
    long start = System.nanoTime();
    try (ExecutorService threads = Executors.newFixedThreadPool(producers)) {
      try {
        for (int producer = 0; producer < producers; producer++) {
          int number = producer;
          long count = commands / producers + (producer < commands % producers ? 1 : 0);
          sent.add(threads.submit(() -> send(fifo, number, count, stop)));
        }
        long taken = 0;
        long deadline = start + 240_000_000_000L;
        while (taken < commands) {
          int now = fifo.drain(recorder, 64);
          taken += now;
          if (now == 0) {
            assertThat(System.nanoTime() - deadline).as("%d taken", taken).isNegative();
            Thread.yield();
          } else if (pauseNanos > 0) {
            LockSupport.parkNanos(pauseNanos);
          }
        }
      } finally {
        stop.set(true);
      }
      long nanos = System.nanoTime() - start;
      assertAllSent(sent, commands, recorder);
      assertThat(fifo.drain(command -> true, capacity)).as("left over").isZero();
      return nanos;
    }
  }

  private static void assertAllSent(List<Future<Long>> sent, long commands, Recorder recorder)
      throws InterruptedException, ExecutionException {
    long all = 0;
    for (int producer = 0; producer < sent.size(); producer++) {
      long count = sent.get(producer).get();
      assertThat(recorder.next[producer]).as("producer %d", producer).isEqualTo(count);
      all += count;
    }
    assertThat(all).isEqualTo(commands);
  }

  private static long send(CommandFifo fifo, int producer, long count, AtomicBoolean stop) {
    for (long i = 0; i < count; i++) {
      long command =
          Command.encode((int) i & Command.MAX_TRANSFER, producer, i >>> Command.TRANSFER_BITS);
      while (!fifo.offer(command)) {
        if (stop.get()) {
          return i;
        }
        Thread.yield();
      }
    }
    return count;
  }

  /** Checks each producer's numbers, and refuses a command now and then, which must come again. */
  private static final class Recorder implements CommandFifo.Handler {
    private final long[] next;
    private long asked;
    private long refused = CommandFifo.NONE;

    Recorder(int producers) {
      next = new long[producers];
    }

    @Override
    public boolean accept(long command) {
      if (refused != CommandFifo.NONE) {
        if (command != refused) {
          throw new AssertionError("refused %x, then came %x".formatted(refused, command));
        }
        refused = CommandFifo.NONE;
      } else if (++asked % 1021 == 0) {
        refused = command;
        return false;
      }
      int producer = Command.extent(command);
      long number =
          ((long) Command.epochTag(command) << Command.TRANSFER_BITS) | Command.transfer(command);
      if (producer >= next.length || number != next[producer]) {
        throw new AssertionError("producer %d sent number %d".formatted(producer, number));
      }
      next[producer]++;
      return true;
    }
  }
}
