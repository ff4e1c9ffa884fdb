package org.mkernel.runtime;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.mkernel.api.MKernelException;
import org.mkernel.api.MismatchException;
import org.mkernel.api.PeerLostException;
import org.mkernel.api.spi.Abort;
import org.mkernel.api.spi.Transfer;
import org.mkernel.api.spi.Wire;

final class ProxyTest {
  private final Arena arena = Arena.ofShared();
  private final Abort abort = new Abort();
  private final Proxy proxy = new Proxy(abort);

  @AfterEach
  void free() {
    arena.close();
  }

  /** A wire that takes as many transfers per peer as the test says. */
  private static class FakeChannel implements Wire.Channel {
    final int[] peerOf;
    final int[] room;
    final List<Integer> posted = new ArrayList<>();
    final List<Integer> toComplete = new ArrayList<>();
    int aborts;

    FakeChannel(int[] peerOf, int... room) {
      this.peerOf = peerOf;
      this.room = room;
    }

    @Override
    public boolean post(int transfer, long epoch) {
      if (room[peerOf[transfer]] == 0) {
        return false;
      }
      room[peerOf[transfer]]--;
      posted.add(transfer);
      return true;
    }

    @Override
    public int poll(Wire.Completions completions) {
      List<Integer> now = List.copyOf(toComplete);
      toComplete.clear();
      now.forEach(completions::completed);
      return now.size();
    }

    @Override
    public void abort() {
      aborts++;
    }

    @Override
    public void close() {}
  }

  private CommandFifo fifo(int capacity) {
    return new CommandFifo(arena.allocate(CommandFifo.bytes(capacity), 128), capacity);
  }

  private ProxyQueue register(CommandFifo fifo, FakeChannel channel, int parking) {
    ProxyQueue queue =
        new ProxyQueue(
            3,
            "op",
            fifo,
            channel,
            1,
            channel.peerOf,
            new long[channel.peerOf.length],
            t -> "put " + t,
            parking);
    proxy.register(queue);
    return queue;
  }

  private static void offer(CommandFifo fifo, long epoch, int... transfers) {
    for (int transfer : transfers) {
      assertThat(new ProxyCommands(fifo).offer(transfer, epoch)).isTrue();
    }
  }

  private void work() {
    while (proxy.doWork() > 0) {
      // Until there is nothing to do.
    }
  }

  @Test
  void fullQueuePairDoesNotStopAFreeOne() {
    FakeChannel channel = new FakeChannel(new int[] {0, 0, 0, 1, 1, 1}, 1, 9);
    CommandFifo fifo = fifo(8);
    ProxyQueue queue = register(fifo, channel, 100);
    queue.enter(1);
    offer(fifo, 1, 0, 2, 5, 1, 3, 4);
    work();
    assertThat(channel.posted).containsExactly(0, 5, 3, 4);
    channel.room[0] = 9;
    work();
    assertThat(channel.posted).containsExactly(0, 5, 3, 4, 2, 1);
  }

  @Test
  void observerHearsWhenTransfersRan() {
    FakeChannel channel = new FakeChannel(new int[] {0}, 0);
    CommandFifo fifo = fifo(2);
    ProxyQueue queue = register(fifo, channel, 1);
    List<Long> heard = new ArrayList<>();
    queue.observe((transfer, epoch, taken, posted, done) ->
        heard.addAll(List.of((long) transfer, epoch, taken, posted, done)));
    queue.enter(1);
    long before = System.nanoTime();
    offer(fifo, 1, 0);
    work();
    channel.room[0] = 1;
    work();
    channel.toComplete.add(0);
    work();
    assertThat(heard).hasSize(5).startsWith(0L, 1L);
    assertThat(heard.get(2)).isGreaterThanOrEqualTo(before);
    assertThat(heard.get(3)).isGreaterThan(heard.get(2));
    assertThat(heard.get(4)).isGreaterThan(heard.get(3));
  }

  @Test
  void laterCommandsDoNotPassParkedOnes() {
    FakeChannel channel = new FakeChannel(new int[] {0, 0, 0, 0}, 0, 0);
    CommandFifo fifo = fifo(8);
    ProxyQueue queue = register(fifo, channel, 100);
    queue.enter(1);
    offer(fifo, 1, 3);
    work();
    offer(fifo, 1, 1, 2);
    channel.room[0] = 2;
    work();
    channel.room[0] = 1;
    work();
    assertThat(channel.posted).containsExactly(3, 1, 2);
  }

  @Test
  void roomThatAppearsWithinATurnIsForParkedCommands() {
    FakeChannel channel =
        new FakeChannel(new int[] {0, 0, 0}, 9) {
          int refusals = 2;

          @Override
          public boolean post(int transfer, long epoch) {
            return refusals-- <= 0 && super.post(transfer, epoch);
          }
        };
    CommandFifo fifo = fifo(4);
    ProxyQueue queue = register(fifo, channel, 100);
    queue.enter(1);
    offer(fifo, 1, 2);
    proxy.doWork();
    offer(fifo, 1, 0, 1);
    // The parked command is refused once more; the adapter has room only then.
    work();
    assertThat(channel.posted).containsExactly(2, 0, 1);
  }

  @Test
  void fullParkingListStopsTheFifoAndLosesNothing() {
    FakeChannel channel = new FakeChannel(new int[] {0, 0, 0, 1}, 0, 9);
    CommandFifo fifo = fifo(4);
    ProxyQueue queue = register(fifo, channel, 1);
    queue.enter(1);
    offer(fifo, 1, 0, 1, 2, 3);
    work();
    assertThat(channel.posted).isEmpty();
    channel.room[0] = 1;
    work();
    assertThat(channel.posted).containsExactly(0);
    channel.room[0] = 9;
    work();
    assertThat(channel.posted).containsExactly(0, 1, 2, 3);
    channel.toComplete.addAll(List.of(3, 1, 0, 2));
    work();
    assertThat(queue.isComplete(1)).isTrue();
    assertThat(queue.isQuiet()).isTrue();
  }

  @Test
  void oneQueueDoesNotStopAnother() {
    FakeChannel full = new FakeChannel(new int[] {0, 0}, 0);
    FakeChannel free = new FakeChannel(new int[] {0, 0}, 9);
    CommandFifo first = fifo(2);
    CommandFifo second = fifo(2);
    register(first, full, 1).enter(1);
    register(second, free, 1).enter(1);
    offer(first, 1, 0, 1);
    offer(second, 1, 0, 1);
    work();
    assertThat(free.posted).containsExactly(0, 1);
  }

  private MKernelException failure() {
    work();
    assertThat(abort.isSet()).isTrue();
    MKernelException cause = abort.cause().orElseThrow();
    assertThat(cause.failure().rank()).hasValue(3);
    assertThat(cause.failure().operation()).hasValue("op");
    return cause;
  }

  @Test
  void tagOfAnotherEpochEndsTheWorld() {
    FakeChannel channel = new FakeChannel(new int[] {0}, 9);
    CommandFifo fifo = fifo(2);
    ProxyQueue queue = register(fifo, channel, 1);
    queue.enter(2);
    offer(fifo, 1, 0);
    assertThat(failure()).isInstanceOf(MismatchException.class).hasMessageContaining("epoch");
    assertThat(channel.posted).isEmpty();
    assertThat(channel.aborts).isEqualTo(1);
  }

  @Test
  void tagsWrap() {
    List<Long> epochs = new ArrayList<>();
    FakeChannel channel =
        new FakeChannel(new int[] {0, 0}, 9) {
          @Override
          public boolean post(int transfer, long epoch) {
            epochs.add(epoch);
            return super.post(transfer, epoch);
          }
        };
    CommandFifo fifo = fifo(2);
    ProxyQueue queue = register(fifo, channel, 1);
    long epoch = 3L * (Command.EPOCH_MASK + 1L) + 1;
    queue.enter(epoch);
    offer(fifo, epoch, 0, 1);
    work();
    assertThat(abort.cause()).isEmpty();
    assertThat(epochs).containsExactly(epoch, epoch);
  }

  @Test
  void secondCommandOfATransferEndsTheWorld() {
    CommandFifo fifo = fifo(4);
    ProxyQueue queue = register(fifo, new FakeChannel(new int[] {0}, 9), 1);
    queue.enter(1);
    offer(fifo, 1, 0, 0);
    assertThat(failure()).isInstanceOf(MismatchException.class).hasMessageContaining("second");
  }

  @Test
  void unknownTransferEndsTheWorld() {
    CommandFifo fifo = fifo(4);
    ProxyQueue queue = register(fifo, new FakeChannel(new int[] {0}, 9), 1);
    queue.enter(1);
    offer(fifo, 1, 1);
    assertThat(failure()).isInstanceOf(MismatchException.class).hasMessageContaining("transfer 1");
  }

  @Test
  void extentIsRefused() {
    CommandFifo fifo = fifo(4);
    ProxyQueue queue = register(fifo, new FakeChannel(new int[] {0}, 9), 1);
    queue.enter(1);
    assertThat(fifo.offer(Command.encode(0, 5, 1))).isTrue();
    assertThat(failure()).isInstanceOf(MismatchException.class).hasMessageContaining("extent 5");
  }

  @Test
  void whatATransportThrowsEndsTheWorld() {
    FakeChannel channel =
        new FakeChannel(new int[] {0}, 9) {
          @Override
          public boolean post(int transfer, long epoch) {
            throw new IllegalStateException("no carrier");
          }
        };
    CommandFifo fifo = fifo(2);
    ProxyQueue queue = register(fifo, channel, 1);
    queue.enter(1);
    offer(fifo, 1, 0);
    assertThat(failure()).isInstanceOf(PeerLostException.class).hasMessageContaining("no carrier");
    assertThat(proxy.doWork()).isZero();
  }

  @Test
  void completionOfNothingEndsTheWorld() {
    FakeChannel channel = new FakeChannel(new int[] {0}, 9);
    ProxyQueue queue = register(fifo(2), channel, 1);
    queue.enter(1);
    channel.toComplete.add(0);
    assertThat(failure()).hasMessageContaining("not in flight");
    assertThat(queue.completed()).isZero();
  }

  @Test
  void threadServesUntilAQueueIsRemoved() throws Exception {
    ProxyThread thread = new ProxyThread(Executors.defaultThreadFactory(), abort);
    assertThat(thread.stop()).isTrue();
    ProxyThread running = new ProxyThread(Executors.defaultThreadFactory(), abort);
    for (int round = 0; round < 200; round++) {
      AtomicBoolean removed = new AtomicBoolean();
      AtomicBoolean touchedAfter = new AtomicBoolean();
      FakeChannel channel =
          new FakeChannel(new int[] {0}, 9) {
            @Override
            public int poll(Wire.Completions completions) {
              if (removed.get()) {
                touchedAfter.set(true);
              }
              toComplete.addAll(posted);
              posted.clear();
              return super.poll(completions);
            }
          };
      CommandFifo fifo = fifo(2);
      ProxyQueue queue =
          new ProxyQueue(3, "op", fifo, channel, 1, channel.peerOf, new long[1], t -> "put " + t);
      running.register(queue);
      queue.enter(1);
      offer(fifo, 1, 0);
      long start = System.nanoTime();
      while (!queue.isComplete(1)) {
        assertThat(System.nanoTime() - start).isLessThan(5_000_000_000L);
        Thread.onSpinWait();
      }
      assertThat(running.unregister(queue)).isTrue();
      removed.set(true);
      if (round % 20 == 0) {
        Thread.sleep(2);
      }
      assertThat(touchedAfter.get()).isFalse();
    }
    assertThat(running.stop()).isTrue();
    assertThat(abort.cause()).isEmpty();
  }

  @Test
  void removalWaitsForTheTurnThatRuns() throws Exception {
    CountDownLatch polled = new CountDownLatch(1);
    CountDownLatch mayReturn = new CountDownLatch(1);
    FakeChannel channel =
        new FakeChannel(new int[] {0}, 9) {
          @Override
          public int poll(Wire.Completions completions) {
            polled.countDown();
            try {
              mayReturn.await();
            } catch (InterruptedException e) {
              throw new IllegalStateException(e);
            }
            return 0;
          }
        };
    ProxyThread running = new ProxyThread(Executors.defaultThreadFactory(), abort);
    ProxyQueue queue =
        new ProxyQueue(3, "op", fifo(2), channel, 1, channel.peerOf, new long[1], t -> "put " + t);
    running.register(queue);
    polled.await();
    try (ExecutorService other = Executors.newSingleThreadExecutor()) {
      Future<Boolean> removal = other.submit(() -> running.unregister(queue));
      assertThatThrownBy(() -> removal.get(50, TimeUnit.MILLISECONDS))
          .isInstanceOf(TimeoutException.class);
      mayReturn.countDown();
      assertThat(removal.get()).isTrue();
    }
    assertThat(running.stop()).isTrue();
  }

  @Test
  void turnsAllocateNothing() throws Exception {
    for (String adversary : List.of("0", "3")) {
      try (EmulatedWorld world = new EmulatedWorld(2, Map.of("emulated.adversarial", adversary))) {
        int count = 8;
        List<Wire.Channel> channels =
            world.open(rank -> {
              List<Transfer> all = new ArrayList<>();
              for (int t = 0; t < count; t++) {
                all.add(
                    new Transfer(
                        1 - rank,
                        world.source[rank].address(),
                        64,
                        1,
                        128L * t,
                        128,
                        8,
                        64,
                        8L * t));
              }
              return all;
            });
        int[] peers = new int[count];
        Arrays.fill(peers, 1);
        long[] done = new long[count];
        Arrays.fill(done, world.done[0].address());
        CommandFifo fifo = world.fifo(16);
        ProxyCommands commands = new ProxyCommands(fifo);
        Proxy loop = new Proxy(abort);
        ProxyQueue queue =
            new ProxyQueue(0, "op", fifo, channels.getFirst(), 1, peers, done, t -> "put " + t);
        loop.register(queue);
        long warm = epochs(loop, queue, commands, 1, 3000);
        Allocation allocation = new Allocation();
        allocation.ofThisThread();
        long before = allocation.ofThisThread();
        epochs(loop, queue, commands, warm, 2000);
        long allocated = allocation.ofThisThread() - before;
        assertThat(allocated).as("bytes in 2000 epochs").isLessThan(4096);
      }
    }
    assertThat(abort.cause()).isEmpty();
  }

  private static long epochs(
      Proxy loop, ProxyQueue queue, ProxyCommands commands, long first, int count) {
    for (long epoch = first; epoch < first + count; epoch++) {
      queue.enter(epoch);
      for (int t = 0; t < queue.transfers(); t++) {
        if (!commands.offer(t, epoch)) {
          throw new AssertionError("the FIFO is full");
        }
      }
      while (!queue.isComplete(epoch)) {
        loop.doWork();
      }
    }
    return first + count;
  }
}
