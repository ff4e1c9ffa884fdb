package org.mkernel.runtime.join;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.mkernel.api.ClosedException;
import org.mkernel.api.Config;
import org.mkernel.api.Failure;
import org.mkernel.api.MKernelException;
import org.mkernel.api.PeerLostException;
import org.mkernel.api.UnavailableException;
import org.mkernel.api.UsageException;

/**
 * A rank's place in a world of several processes: rounds of an all-gather, questions to all, and
 * the news that the world is dead. Ranks are connected to rank 0, which passes on what concerns
 * others. One thread does all of it, so that no peer can hold up another one.
 */
public abstract sealed class Membership implements AutoCloseable permits Hub, Member {
  private static final Logger LOG = LogManager.getLogger(Membership.class);

  /** How long past the deadline a rank waits for rank 0, which knows who is missing. */
  static final long GRACE_NANOS = TimeUnit.MILLISECONDS.toNanos(500);

  private static final long TICK_MILLIS = 10;
  private static final long CLOSE_NANOS = TimeUnit.SECONDS.toNanos(2);
  private static final long LINGER_NANOS = TimeUnit.MILLISECONDS.toNanos(300);
  private static final long MAX_BEAT_NANOS = TimeUnit.SECONDS.toNanos(1);
  private static final long LEAST_SILENCE_NANOS = TimeUnit.SECONDS.toNanos(3);
  private static final int MAX_CONTRIBUTION = 16 << 20;
  private static final int MAX_QUESTION = 1 << 16;

  final int rank;
  final int size;
  final Secret secret;
  final long waitNanos;
  final long joinNanos;
  final Selector selector;
  final CompletableFuture<Boolean> ready = new CompletableFuture<>();
  final CompletableFuture<Boolean> allLeft = new CompletableFuture<>();
  final ThreadFactory threads;
  private final Queue<Runnable> mail = new ConcurrentLinkedQueue<>();
  private final ByteBuffer buffer = ByteBuffer.allocateDirect(1 << 16);
  private final Map<Long, CompletableFuture<List<Optional<byte[]>>>> questions = new HashMap<>();
  private @Nullable CompletableFuture<List<Optional<byte[]>>> gathering;
  private @Nullable Thread thread;
  private volatile @Nullable Listener listener;
  private volatile @Nullable MKernelException failure;
  private volatile boolean closing;
  private long round;
  private long nextQuestion;

  Membership(
      int rank, int size, Secret secret, long joinNanos, long waitNanos, ThreadFactory threads) {
    this.rank = rank;
    this.size = size;
    this.secret = secret;
    this.joinNanos = joinNanos;
    this.waitNanos = waitNanos;
    this.threads = threads;
    try {
      this.selector = Selector.open();
    } catch (IOException e) {
      throw new UnavailableException(
          "no more files can be opened: " + e,
          Failure.remedy("raise the limit of open files (ulimit -n)"),
          e);
    }
  }

  /** What a world does for its members. Called by the control thread: must not wait. */
  public interface Listener {
    /**
     * The world is dead.
     *
     * @param cause why
     */
    void aborted(MKernelException cause);

    /**
     * A rank asks all ranks.
     *
     * @param question what it asks
     * @return the answer of this rank
     */
    byte[] answer(byte[] question);

    /**
     * A rank has told rank 0 something. Called on rank 0, also for its own notes.
     *
     * @param from the rank
     * @param note what it told
     */
    void noted(int from, byte[] note);

    /** Called a hundred times a second. */
    void tick();
  }

  /**
   * Meets the other ranks. Collective; it returns when all are here.
   *
   * @param launch who and where, in a world of several ranks
   * @param config settings: {@code join-deadline} in seconds, 60 unless set, for the meeting and
   *     each exchange, {@code deadline} for how long a rank may be silent, {@code secret} or {@code
   *     secret-file}
   * @return the place in the world
   * @throws PeerLostException when ranks are missing at the deadline; it names them
   * @throws org.mkernel.api.MismatchException when secrets, versions, sizes or numbers do not fit
   * @throws UnavailableException when rank 0 can't listen
   * @throws UsageException when the address leaves this host without a secret
   */
  public static Membership join(Launch launch, Config config) {
    Endpoint endpoint =
        launch
            .rendezvous()
            .orElseThrow(
                () -> new IllegalArgumentException("a world of one rank needs no meeting"));
    Secret secret = Secret.from(config);
    long joinNanos = joinNanos(config);
    long waitNanos = config.deadline().toNanos();
    return launch.rank() == 0
        ? Hub.open(endpoint, launch.size(), secret, joinNanos, waitNanos, config.threads())
        : Member.connect(launch, List.of(endpoint), secret, joinNanos, waitNanos, config.threads());
  }

  static long joinNanos(Config config) {
    String text = config.option("join-deadline").orElse("60");
    try {
      double seconds = Double.parseDouble(text);
      if (seconds > 0 && seconds <= TimeUnit.DAYS.toSeconds(1)) {
        return (long) Math.max(1, seconds * 1e9);
      }
    } catch (NumberFormatException e) {
      // Reported below, with the text.
    }
    throw new UsageException(
        "join-deadline is \"%s\"; seconds are needed, more than 0 and at most a day"
            .formatted(text));
  }

  /**
   * Meets the other ranks of a part of this world. All ranks of this world call it at once, with
   * the same parts, of which no two have a rank in common.
   *
   * @param parts the ranks of each part, ascending; they become the ranks 0, 1, … there
   * @return the place in the part of this rank; empty when it is alone there, or in none
   * @throws PeerLostException when ranks are missing at the deadline
   * @throws UnavailableException when the first rank of a part can't listen
   */
  public final Optional<Membership> meetParts(List<int[]> parts) {
    int[] own =
        parts.stream()
            .filter(part -> Arrays.binarySearch(part, rank) >= 0)
            .findFirst()
            .orElse(new int[] {rank});
    int place = Arrays.binarySearch(own, rank);
    Hub hub = own.length > 1 && place == 0 ? Hub.of(address(), own.length, this) : null;
    boolean met = false;
    try {
      String where =
          hub == null ? "" : new Endpoint(address().getHostAddress(), hub.port()).toString();
      List<byte[]> all = allGather(where.getBytes(UTF_8));
      met = true;
      if (own.length == 1) {
        return Optional.empty();
      }
      if (hub != null) {
        return Optional.of(hub.meet());
      }
      Endpoint first = Endpoint.parse("the part's rendezvous", new String(all.get(own[0]), UTF_8));
      Launch launch =
          new Launch(
              "split", place, own.length, OptionalInt.empty(), Optional.of(first), List.of());
      return Optional.of(
          Member.connect(launch, List.of(first), secret, joinNanos, waitNanos, threads));
    } finally {
      if (!met && hub != null) {
        hub.close();
      }
    }
  }

  /**
   * This rank.
   *
   * @return 0 … size − 1
   */
  public final int rank() {
    return rank;
  }

  /**
   * The number of ranks.
   *
   * @return at least 2
   */
  public final int size() {
    return size;
  }

  /**
   * The address by which this process takes part, for others to connect to.
   *
   * @return an address of this host
   */
  public abstract InetAddress address();

  /**
   * A key that only ranks of this world can derive, where there is a secret.
   *
   * @param purpose what for
   * @return 32 bytes, the same on all ranks
   */
  public final byte[] key(String purpose) {
    return secret.derive("world: " + purpose, world());
  }

  /**
   * Whether ranks share a secret; without one, nothing may leave this host.
   *
   * @return true with a secret
   */
  public final boolean hasSecret() {
    return secret.isShared();
  }

  /** The number that rank 0 drew for this world. */
  abstract byte[] world();

  /**
   * Sets who hears of what happens; at once of a failure that happened before.
   *
   * @param hears the listener
   */
  public final void listen(Listener hears) {
    post(() -> {
      listener = hears;
      MKernelException cause = failure;
      if (cause != null) {
        hears.aborted(cause);
      }
    });
  }

  /**
   * Gives a contribution and receives everybody's. All ranks call it in the same order.
   *
   * @param contribution this rank's bytes
   * @return all ranks' bytes, by rank
   */
  public final List<byte[]> allGather(byte[] contribution) {
    int most = Math.min(MAX_CONTRIBUTION, Message.MAX_PAYLOAD / size - 64);
    if (contribution.length > most) {
      throw new UsageException(
          "rank %d contributes %d bytes to an exchange of %d ranks; at most %d are allowed"
              .formatted(rank, contribution.length, size, most));
    }
    if (closing) {
      throw new ClosedException("this world was closed");
    }
    CompletableFuture<List<Optional<byte[]>>> result = new CompletableFuture<>();
    byte[] copy = contribution.clone();
    post(() -> {
      if (isFailed(result)) {
        return;
      }
      gathering = result;
      attempt(() -> contribute(++round, copy));
    });
    return await(result, joinNanos + 2 * GRACE_NANOS, "take part in an exchange").stream()
        .map(part -> part.orElseThrow(IllegalStateException::new))
        .toList();
  }

  /**
   * Asks all ranks. Any thread but the control thread may ask, also when the world is dead.
   *
   * @param question what to ask, at most 64 KiB
   * @param nanos how long to wait for answers
   * @return by rank, what it answered; empty where it did not in time
   */
  public final List<Optional<byte[]>> ask(byte[] question, long nanos) {
    if (question.length > MAX_QUESTION) {
      throw new UsageException(
          "a question of %d bytes; at most %d are allowed"
              .formatted(question.length, MAX_QUESTION));
    }
    CompletableFuture<List<Optional<byte[]>>> answers = new CompletableFuture<>();
    post(() -> {
      long number = ++nextQuestion;
      questions.put(number, answers);
      attempt(() -> ask(number, question, nanos));
    });
    try {
      return answers.get(nanos + GRACE_NANOS, TimeUnit.NANOSECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } catch (ExecutionException | TimeoutException e) {
      LOG.debug("nobody answered", e);
    }
    return java.util.Collections.nCopies(size, Optional.empty());
  }

  /**
   * Tells rank 0 something; it may be called by the listener.
   *
   * @param note what to tell
   */
  public final void tell(byte[] note) {
    post(() -> attempt(() -> note(note)));
  }

  /**
   * Says that the world is dead; the others hear of it. The first cause stands. Returns at once.
   *
   * @param cause why
   */
  public final void abort(MKernelException cause) {
    post(() -> fail(cause));
  }

  /**
   * Says that this rank needs nothing more, and waits until all say so, the world is dead, or the
   * join deadline has passed.
   */
  public final void leave() {
    post(() -> attempt(this::sendLeave));
    try {
      var _ = allLeft.get(joinNanos, TimeUnit.NANOSECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } catch (ExecutionException | TimeoutException e) {
      LOG.debug("rank {} leaves a world that others still use", rank, e);
    }
  }

  /** Ends the connections, after what waits to be sent, or two seconds. */
  @Override
  public final void close() {
    closing = true;
    selector.wakeup();
    Thread running = thread;
    if (running == null) {
      release();
      return;
    }
    long deadline = System.nanoTime() + 2 * CLOSE_NANOS;
    boolean interrupted = false;
    while (running.isAlive() && deadline - System.nanoTime() > 0) {
      try {
        running.join(TimeUnit.NANOSECONDS.toMillis(CLOSE_NANOS));
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
    if (running.isAlive()) {
      LOG.error("the control thread of rank {} does not end", rank);
    }
  }

  // The rest runs on the control thread.

  /** Something that uses connections. */
  interface Step {
    void run() throws IOException;
  }

  abstract void contribute(long number, byte[] contribution) throws IOException;

  abstract void ask(long number, byte[] question, long nanos) throws IOException;

  abstract void note(byte[] note) throws IOException;

  abstract void sendLeave() throws IOException;

  /** Tells the others that the world is dead. */
  abstract void spread(MKernelException cause);

  abstract void accept();

  abstract void received(Link link, FrameDecoder.Frame frame) throws IOException;

  /** A connection has failed; it is closed. */
  abstract void lost(Link link, IOException why);

  abstract void tick(long now);

  abstract boolean isFlushed();

  /** Says to peers that nothing more comes. */
  abstract void finishLinks();

  abstract boolean hasLinks();

  abstract void closeLinks();

  final void start() {
    Thread started = threads.newThread(this::run);
    started.setName("mkernel-control-" + rank);
    started.setDaemon(true);
    thread = started;
    started.start();
  }

  final void post(Runnable work) {
    mail.add(work);
    selector.wakeup();
  }

  /** Does something; a connection of this rank that fails is the end of the world. */
  private void attempt(Step step) {
    try {
      step.run();
    } catch (IOException e) {
      fail(
          new PeerLostException(
              "rank %d can't reach the others: %s".formatted(rank, e.getMessage()),
              Failure.UNKNOWN.withRank(rank),
              e));
    }
  }

  private boolean isFailed(CompletableFuture<?> result) {
    MKernelException cause = failure;
    if (cause != null) {
      result.completeExceptionally(cause);
    }
    return cause != null;
  }

  final @Nullable MKernelException failure() {
    return failure;
  }

  final boolean isDead() {
    return failure != null;
  }

  final void fail(MKernelException cause) {
    if (failure != null) {
      return;
    }
    failure = cause;
    Listener hears = listener;
    if (hears != null) {
      hears.aborted(cause);
    }
    ready.completeExceptionally(cause);
    allLeft.completeExceptionally(cause);
    if (gathering != null) {
      gathering.completeExceptionally(cause);
    }
    spread(cause);
  }

  final long round() {
    return round;
  }

  final void gathered(List<Optional<byte[]>> parts) {
    CompletableFuture<List<Optional<byte[]>>> result = gathering;
    gathering = null;
    if (result != null) {
      result.complete(parts);
    }
  }

  final void answered(long number, List<Optional<byte[]>> answers) {
    CompletableFuture<List<Optional<byte[]>>> asked = questions.remove(number);
    if (asked != null) {
      asked.complete(answers);
    }
  }

  final byte[] answer(byte[] question) {
    Listener hears = listener;
    return hears == null ? new byte[0] : hears.answer(question);
  }

  final void noted(int from, byte[] note) {
    Listener hears = listener;
    if (hears != null) {
      hears.noted(from, note);
    }
  }

  /** Keeps a connection alive, and finds out when it is not. */
  final void watch(Link link, long now) {
    if (link.sinceHeard(now) > Math.max(waitNanos, LEAST_SILENCE_NANOS) + GRACE_NANOS) {
      lost(
          link,
          new IOException("nothing was heard for %.1f s".formatted(link.sinceHeard(now) / 1e9)));
    } else if (link.sinceSent(now) > Math.min(waitNanos / 5, MAX_BEAT_NANOS)) {
      try {
        link.send(Message.HEARTBEAT, new byte[0]);
      } catch (IOException e) {
        lost(link, e);
      }
    }
  }

  private void run() {
    try {
      long lastTick = System.nanoTime();
      while (!closing || !mail.isEmpty()) {
        lastTick = turn(lastTick);
      }
      long flushBy = System.nanoTime() + CLOSE_NANOS;
      while (!isFlushed() && System.nanoTime() - flushBy < 0) {
        lastTick = turn(lastTick);
      }
      // A peer must read the last words before it sees the connection end.
      finishLinks();
      long lingerUntil = System.nanoTime() + LINGER_NANOS;
      while (hasLinks() && System.nanoTime() - lingerUntil < 0) {
        lastTick = turn(lastTick);
      }
    } catch (IOException | RuntimeException e) {
      LOG.error("the control thread of rank {} died", rank, e);
      fail(
          new PeerLostException(
              "the control thread of rank %d died: %s".formatted(rank, e),
              Failure.UNKNOWN.withRank(rank).withPeer(rank),
              e));
    } finally {
      release();
    }
  }

  private long turn(long lastTick) throws IOException {
    var _ = selector.select(this::serve, TICK_MILLIS);
    for (Runnable work = mail.poll(); work != null; work = mail.poll()) {
      work.run();
    }
    long now = System.nanoTime();
    if (now - lastTick < TimeUnit.MILLISECONDS.toNanos(TICK_MILLIS)) {
      return lastTick;
    }
    tick(now);
    Listener hears = listener;
    if (hears != null) {
      hears.tick();
    }
    return now;
  }

  private void serve(SelectionKey key) {
    if (!key.isValid()) {
      return;
    }
    if (key.isAcceptable()) {
      accept();
      return;
    }
    Link link = (Link) key.attachment();
    try {
      if (key.isWritable()) {
        link.flush();
      }
      if (key.isValid() && key.isReadable()) {
        link.read(buffer, this::received);
      }
    } catch (IOException e) {
      link.close();
      lost(link, e);
    }
  }

  private void release() {
    closeLinks();
    ClosedException closed = new ClosedException("this world was closed");
    ready.completeExceptionally(closed);
    allLeft.completeExceptionally(closed);
    if (gathering != null) {
      gathering.completeExceptionally(closed);
    }
    questions.values().forEach(asked -> asked.completeExceptionally(closed));
    try {
      selector.close();
    } catch (IOException e) {
      LOG.debug("a selector did not close", e);
    }
  }

  /** Waits for something that rank 0 bounds in time; longer only when rank 0 is silent. */
  final <T> T await(CompletableFuture<T> result, long nanos, String what) {
    try {
      return result.get(nanos, TimeUnit.NANOSECONDS);
    } catch (ExecutionException e) {
      if (e.getCause() instanceof MKernelException cause) {
        throw cause.copy();
      }
      throw new IllegalStateException("the control thread failed", e.getCause());
    } catch (TimeoutException e) {
      PeerLostException lost =
          new PeerLostException(
              "rank %d waited %.1f s for rank 0 to %s".formatted(rank, nanos / 1e9, what),
              Failure.remedy("look at rank 0").withRank(rank).withPeer(0),
              e);
      abort(lost);
      throw lost;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      PeerLostException lost =
          new PeerLostException(
              "rank %d was interrupted while it waited for the others".formatted(rank),
              Failure.UNKNOWN.withRank(rank).withPeer(rank),
              e);
      abort(lost);
      throw lost;
    }
  }
}
