package org.mkernel.runtime;

import java.nio.ByteBuffer;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.mkernel.api.Failure;
import org.mkernel.api.MKernelException;
import org.mkernel.api.MismatchException;
import org.mkernel.api.spi.Exchange;
import org.mkernel.runtime.join.Membership;

/**
 * The ranks of a world of several processes: what happens in one travels to all. Death goes both
 * ways; launches go to rank 0, which compares their order.
 */
final class JoinedGroup implements Group {
  private static final long PROGRESS_NANOS = TimeUnit.MILLISECONDS.toNanos(300);

  private final Membership membership;
  private final LocalWorld world;
  private volatile boolean leaving;

  JoinedGroup(Membership membership, LocalWorld world) {
    this.membership = membership;
    this.world = world;
  }

  /** Lets the world hear of the others, from now on. */
  void listen() {
    membership.listen(new ControlThread());
  }

  @Override
  public Exchange exchange(int rank) {
    if (rank != membership.rank()) {
      throw new IllegalArgumentException("rank %d is in another process".formatted(rank));
    }
    return contribution -> {
      world.throwIfAborted();
      return membership.allGather(contribution);
    };
  }

  @Override
  public void spread(MKernelException cause) {
    if (!leaving) {
      membership.abort(cause);
    }
  }

  @Override
  public List<Optional<Progress>> progress(int operation) {
    byte[] question = ByteBuffer.allocate(Integer.BYTES).putInt(operation).array();
    return membership.ask(question, PROGRESS_NANOS).stream()
        .map(answer -> answer.flatMap(Progresses::decode))
        .toList();
  }

  @Override
  public Optional<Membership> meetParts(List<int[]> parts) {
    return membership.meetParts(parts);
  }

  @Override
  public Map<String, String> options() {
    return Map.of(
        "world-key",
        HexFormat.of().formatHex(membership.key("transports")),
        "world-address",
        membership.address().getHostAddress(),
        "world-loopback",
        Boolean.toString(!membership.hasSecret()));
  }

  @Override
  public void leave() {
    membership.leave();
    leaving = true;
  }

  @Override
  public void close() {
    membership.close();
  }

  /** What the control thread calls: nothing here waits. */
  private final class ControlThread implements Membership.Listener {
    /** Launches in one note. */
    private static final int MAX_NOTED = 256;

    /** What all ranks have launched; used on rank 0. */
    private final LaunchLedger order = new LaunchLedger();

    private long noted;
    private boolean told;

    @Override
    public void aborted(MKernelException cause) {
      told = true;
      world.abort(cause);
    }

    @Override
    public byte[] answer(byte[] question) {
      if (question.length != Integer.BYTES) {
        return new byte[0];
      }
      return Progresses.encode(
          world.progress(ByteBuffer.wrap(question).getInt(), membership.rank()));
    }

    @Override
    public void noted(int from, byte[] note) {
      ByteBuffer in = ByteBuffer.wrap(note);
      while (in.remaining() >= Long.BYTES + Integer.BYTES) {
        long sequence = in.getLong();
        int operation = in.getInt();
        int other = order.record(sequence, operation);
        if (other >= 0) {
          world.abort(
              new MismatchException(
                  "launch %d of rank %d is %s, where another rank launched %s"
                      .formatted(sequence, from, world.name(operation), world.name(other)),
                  Failure.remedy("launch the same operations in the same order on all ranks")
                      .withRank(from)));
        }
      }
    }

    @Override
    public void tick() {
      if (!told && world.abort().isSet()) {
        // It was set where nobody could tell: by a proxy, or a plug-in.
        told = true;
        world.abort().cause().ifPresent(JoinedGroup.this::spread);
      }
      noteLaunches();
    }

    /** Tells rank 0 what was launched since the last time. */
    private void noteLaunches() {
      LaunchLedger own = world.ledger();
      long last = own.last();
      if (last == noted) {
        return;
      }
      // Older ones than the ledger keeps were retired by all, or nobody could have gone on.
      long first = Math.max(noted + 1, last - MAX_NOTED + 1);
      ByteBuffer out = ByteBuffer.allocate((int) (last - first + 1) * (Long.BYTES + Integer.BYTES));
      for (long sequence = first; sequence <= last; sequence++) {
        int operation = own.operation(sequence);
        if (operation >= 0) {
          out.putLong(sequence).putInt(operation);
        }
      }
      noted = last;
      membership.tell(java.util.Arrays.copyOf(out.array(), out.position()));
    }
  }
}
