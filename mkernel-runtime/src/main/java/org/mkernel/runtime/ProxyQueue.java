package org.mkernel.runtime;

import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.IntFunction;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.mkernel.api.Failure;
import org.mkernel.api.MKernelException;
import org.mkernel.api.MismatchException;
import org.mkernel.api.PeerLostException;
import org.mkernel.api.spi.Abort;
import org.mkernel.api.spi.Wire;

/**
 * One operation on one rank as the proxy serves it: takes commands from the FIFO, posts them to the
 * channel, and raises what says that a source may be reused. Each queue pair has a parking list: a
 * full one stops neither the others nor, while the list has room, the FIFO, and its own order
 * holds.
 */
final class ProxyQueue implements Wire.Completions {
  /** Hears when transfers ran, for a trace. */
  interface Observer {
    /**
     * A transfer is complete. Called by the proxy; times are of {@link System#nanoTime}.
     *
     * @param transfer its number
     * @param epoch its epoch
     * @param taken when its command was taken from the FIFO
     * @param posted when the transport took it; later than {@code taken} when its queue pair was
     *     full
     * @param done when it was complete
     */
    void transferred(int transfer, long epoch, long taken, long posted, long done);
  }

  /** Raises signals of this rank. */
  interface Signals {
    /**
     * Stores a signal after all that was done before.
     *
     * @param address where it lies
     * @param value its value
     */
    void raise(long address, long value);
  }

  /** How many commands one turn takes, so that no queue starves the others. */
  private static final int TURN_COMMANDS = 64;

  private final int rank;
  private final String operation;
  private final CommandFifo fifo;
  private final Wire.Channel channel;
  private final int variants;
  private final int[] peerOf;
  private final int[] pairOf;
  private final long[] doneAddress;
  private final IntFunction<String> describe;
  private final ParkingList[] parked;
  private final long[] acceptedEpoch;
  private final boolean[] inFlight;
  private final CommandFifo.Handler handler = this::accept;
  private final AtomicLong epoch = new AtomicLong();
  private final AtomicLong completed = new AtomicLong();
  private final long[] taken;
  private final long[] posted;
  private volatile @Nullable Runnable wake;
  private @Nullable Observer observer;
  private Signals signals = RawMemory::raise;
  private Abort abort = new Abort();
  private boolean stopped;

  /**
   * Makes a queue, not yet served.
   *
   * @param rank whose commands
   * @param operation its name, for messages
   * @param fifo where commands come from
   * @param channel where they go; its prepared transfers are {@code transfer · variants + epoch mod
   *     variants}
   * @param variants prepared transfers for each transfer, at least 1
   * @param peerOf the rank that receives, by transfer
   * @param doneAddress by transfer, the signal here to raise to the epoch when the source may be
   *     reused; 0 for none
   * @param describe a transfer in words, for messages
   */
  ProxyQueue(
      int rank,
      String operation,
      CommandFifo fifo,
      Wire.Channel channel,
      int variants,
      int[] peerOf,
      long[] doneAddress,
      IntFunction<String> describe) {
    this(
        rank, operation, fifo, channel, variants, peerOf, doneAddress, describe, Integer.MAX_VALUE);
  }

  /** As the other one, with parking lists of at most a given length. */
  ProxyQueue(
      int rank,
      String operation,
      CommandFifo fifo,
      Wire.Channel channel,
      int variants,
      int[] peerOf,
      long[] doneAddress,
      IntFunction<String> describe,
      int parkingCapacity) {
    if (variants < 1 || peerOf.length != doneAddress.length) {
      throw new IllegalArgumentException(
          "%d variants, %d peers, %d done addresses"
              .formatted(variants, peerOf.length, doneAddress.length));
    }
    this.rank = rank;
    this.operation = operation;
    this.fifo = fifo;
    this.channel = channel;
    this.variants = variants;
    this.peerOf = peerOf.clone();
    this.doneAddress = doneAddress.clone();
    this.describe = describe;
    this.acceptedEpoch = new long[peerOf.length];
    this.inFlight = new boolean[peerOf.length];
    this.taken = new long[peerOf.length];
    this.posted = new long[peerOf.length];
    int[] peers = Arrays.stream(peerOf).sorted().distinct().toArray();
    this.pairOf = Arrays.stream(peerOf).map(peer -> Arrays.binarySearch(peers, peer)).toArray();
    this.parked = new ParkingList[peers.length];
    for (int pair = 0; pair < peers.length; pair++) {
      int peer = peers[pair];
      int transfers = (int) Arrays.stream(peerOf).filter(p -> p == peer).count();
      parked[pair] = new ParkingList(Math.min(transfers, parkingCapacity));
    }
  }

  /**
   * Sets who raises signals, for memory that the host can't follow. Called before it is registered.
   */
  void raiseBy(Signals raises) {
    signals = raises;
  }

  /** Sets who hears of transfers. Called before the queue is registered. */
  void observe(Observer hears) {
    observer = hears;
  }

  /**
   * Says that an epoch begins. Called before its first command; all transfers of the epoch before
   * are complete.
   *
   * @param next the epoch
   */
  void enter(long next) {
    epoch.setRelease(next);
    Runnable waking = wake;
    if (waking != null) {
      waking.run();
    }
  }

  /** Transfers completed since the start. Any thread may ask. */
  long completed() {
    return completed.getAcquire();
  }

  /** Transfers of one epoch. */
  int transfers() {
    return peerOf.length;
  }

  /** Whether every transfer of an epoch is complete. Any thread may ask. */
  boolean isComplete(long ofEpoch) {
    return completed() >= ofEpoch * peerOf.length;
  }

  /** The ranks that transfers are on their way to, or were a moment ago. Any thread may ask. */
  List<Integer> pendingPeers() {
    return IntStream.range(0, peerOf.length)
        .filter(transfer -> inFlight[transfer])
        .map(transfer -> peerOf[transfer])
        .distinct()
        .sorted()
        .boxed()
        .toList();
  }

  /** Whether nothing is due. */
  boolean isQuiet() {
    return stopped || isComplete(epoch.getAcquire());
  }

  /** Who wakes the proxy when an epoch begins. */
  void onEnter(Runnable wakeProxy) {
    wake = wakeProxy;
  }

  /**
   * Serves the queue once. Called by the proxy only.
   *
   * @param world what ends all
   * @return how much was done, 0 when there was nothing to do
   */
  int doWork(Abort world) {
    if (stopped) {
      return 0;
    }
    abort = world;
    if (world.isSet()) {
      stop();
      return 1;
    }
    try {
      return postParked() + fifo.drain(handler, TURN_COMMANDS) + channel.poll(this);
    } catch (Throwable e) {
      // Whatever it is, the ranks that wait for these transfers must hear of it.
      world.set(failure(e));
      return 1;
    }
  }

  private void stop() {
    stopped = true;
    try {
      channel.abort();
    } catch (RuntimeException e) {
      abort.cause().ifPresent(cause -> cause.addSuppressed(e));
    }
  }

  private int postParked() {
    int posted = 0;
    for (ParkingList list : parked) {
      while (!list.isEmpty() && post(list.firstTransfer(), list.firstEpoch())) {
        list.removeFirst();
        posted++;
      }
    }
    return posted;
  }

  /** Takes a command, unless neither its queue pair nor its parking list has room. */
  private boolean accept(long command) {
    int transfer = Command.transfer(command);
    long current = epoch.getAcquire();
    check(command, transfer, current);
    ParkingList list = parked[pairOf[transfer]];
    if (observer != null) {
      taken[transfer] = System.nanoTime();
    }
    if (!list.isEmpty() || !post(transfer, current)) {
      if (list.isFull()) {
        return false;
      }
      list.add(transfer, current);
    }
    acceptedEpoch[transfer] = current;
    inFlight[transfer] = true;
    return true;
  }

  private void check(long command, int transfer, long current) {
    if (transfer >= peerOf.length) {
      throw mismatch(
          "a command names transfer %d; there are %d".formatted(transfer, peerOf.length));
    }
    if (Command.epochTag(command) != (current & Command.EPOCH_MASK)) {
      throw mismatch(
          "a command for %s carries epoch tag %d; epoch %d is in flight"
              .formatted(describe.apply(transfer), Command.epochTag(command), current));
    }
    if (Command.extent(command) != 0) {
      throw mismatch(
          "a command for %s carries extent %d; wires move whole transfers"
              .formatted(describe.apply(transfer), Command.extent(command)));
    }
    if (inFlight[transfer] || acceptedEpoch[transfer] == current) {
      throw mismatch(
          "a second command for %s in epoch %d".formatted(describe.apply(transfer), current));
    }
  }

  private MismatchException mismatch(String what) {
    return new MismatchException("%s on rank %d: %s".formatted(operation, rank, what), here());
  }

  private boolean post(int transfer, long ofEpoch) {
    if (!channel.post(transfer * variants + (int) (ofEpoch % variants), ofEpoch)) {
      return false;
    }
    if (observer != null) {
      posted[transfer] = System.nanoTime();
    }
    return true;
  }

  @Override
  public void completed(int prepared) {
    int transfer = prepared / variants;
    if (!inFlight[transfer]) {
      throw new IllegalStateException(
          "the transport reports %s as complete, which is not in flight"
              .formatted(describe.apply(transfer)));
    }
    inFlight[transfer] = false;
    if (observer != null) {
      observer.transferred(
          transfer, acceptedEpoch[transfer], taken[transfer], posted[transfer], System.nanoTime());
    }
    if (doneAddress[transfer] != 0) {
      signals.raise(doneAddress[transfer], acceptedEpoch[transfer]);
    }
    completed.setRelease(completed.getPlain() + 1);
  }

  @Override
  public void failed(int prepared, String reason, long nativeCode, String remedy) {
    int transfer = prepared / variants;
    int peer = peerOf[transfer];
    String task = describe.apply(transfer);
    abort.set(
        new PeerLostException(
            "%s, epoch %d: %s from rank %d to rank %d failed: %s (code %d)"
                .formatted(
                    operation, acceptedEpoch[transfer], task, rank, peer, reason, nativeCode),
            Failure.remedy(remedy)
                .withRank(rank)
                .withPeer(peer)
                .withOperation(operation)
                .withTask(task)
                .withNativeCode(nativeCode)));
  }

  private MKernelException failure(Throwable e) {
    return e instanceof MKernelException known
        ? known
        : new PeerLostException(
            "%s: the proxy of rank %d failed: %s".formatted(operation, rank, e),
            here().withPeer(rank),
            e);
  }

  private Failure here() {
    return Failure.UNKNOWN.withRank(rank).withOperation(operation);
  }
}
