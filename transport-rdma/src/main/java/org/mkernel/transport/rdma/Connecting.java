package org.mkernel.transport.rdma;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import org.mkernel.api.Failure;
import org.mkernel.api.MismatchException;
import org.mkernel.api.spi.Span;
import org.mkernel.api.spi.Transfer;

/**
 * How a channel comes to be, in three rounds of talk: memory and addresses; numbers of queue pairs;
 * all are connected. Whatever fails, nothing is left behind.
 */
final class Connecting {
  private final Adapter adapter;
  private final Talk talk;
  private final TransferCheck check;
  private final int world;
  private final List<Transfer> transfers;

  Connecting(Adapter adapter, Talk talk, int world, List<Transfer> transfers) {
    this.adapter = adapter;
    this.talk = talk;
    this.check = new TransferCheck(talk.operation(), talk.rank(), world);
    this.world = world;
    this.transfers = transfers;
  }

  RdmaChannel run(List<Span> spans) {
    ChannelResources resources = new ChannelResources(adapter);
    try {
      return connect(resources, spans);
    } catch (RuntimeException e) {
      try {
        resources.close();
      } catch (RuntimeException second) {
        e.addSuppressed(second);
      }
      throw e;
    }
  }

  private RdmaChannel connect(ChannelResources resources, List<Span> spans) {
    List<MemoryRegions> registered = new ArrayList<>();
    List<byte[]> offered =
        talk.round(() -> {
          for (int number = 0; number < transfers.size(); number++) {
            check.requireSound(number, transfers.get(number));
          }
          MemoryRegions regions = resources.register(spans);
          regions.registerSources(transfers);
          registered.add(regions);
          return new Offer(adapter.address(), regions.offered(), receivers()).encode();
        });
    List<Offer> offers = new ArrayList<>();
    List<QueuePair> pairs = new ArrayList<>();
    List<byte[]> numbered =
        talk.round(() -> {
          for (byte[] offer : offered) {
            offers.add(Offer.decode(offers.size(), offer));
          }
          for (int number = 0; number < transfers.size(); number++) {
            Transfer t = transfers.get(number);
            check.requireFit(number, t, offers.get(t.peer()).spans());
          }
          pairs.addAll(resources.pairs(neighbours(offers)));
          return numbers(pairs);
        });
    int[] pairOfPeer = new int[world];
    List<PreparedTransfers> prepared = new ArrayList<>();
    talk.round(() -> {
      for (int i = 0; i < pairs.size(); i++) {
        int peer = pairs.get(i).peer();
        pairOfPeer[peer] = i;
        connect(pairs.get(i), offers.get(peer).address(), numbered.get(peer));
      }
      prepared.add(
          new PreparedTransfers(
              resources.arena(),
              transfers,
              pairOfPeer,
              registered.getFirst(),
              offers,
              adapter.messageBytes()));
      return new byte[0];
    });
    return new RdmaChannel(
        talk.operation(), talk.rank(), adapter, resources, pairs, prepared.getFirst());
  }

  /** The ranks that this one sends to. */
  private List<Integer> receivers() {
    return transfers.stream().map(Transfer::peer).distinct().sorted().toList();
  }

  /** The ranks that send to this one, or receive from it. */
  private List<Integer> neighbours(List<Offer> offers) {
    List<Integer> receivers = receivers();
    return IntStream.range(0, world)
        .filter(peer ->
            peer != talk.rank()
                && (receivers.contains(peer) || offers.get(peer).peers().contains(talk.rank())))
        .boxed()
        .toList();
  }

  /** By rank: the queue pair for it and its first packet, 0 and 0 where there is none. */
  private byte[] numbers(List<QueuePair> pairs) {
    ByteBuffer numbers = ByteBuffer.allocate(world * 2 * Integer.BYTES);
    for (QueuePair pair : pairs) {
      numbers.putInt(pair.peer() * 2 * Integer.BYTES, pair.number());
      numbers.putInt((pair.peer() * 2 + 1) * Integer.BYTES, pair.firstPacket());
    }
    return numbers.array();
  }

  private void connect(QueuePair pair, RdmaAddress remote, byte[] numbers) {
    if (numbers.length != world * 2 * Integer.BYTES) {
      throw new MismatchException(
          "rank %d sent %d bytes of queue pairs; a world of %d needs %d"
              .formatted(pair.peer(), numbers.length, world, world * 2 * Integer.BYTES),
          Failure.remedy("let all ranks run the same version of mkernel").withPeer(pair.peer()));
    }
    int[] ofPeer = new int[2];
    ByteBuffer.wrap(numbers).asIntBuffer().get(talk.rank() * 2, ofPeer);
    if (Arrays.equals(ofPeer, new int[2])) {
      throw new MismatchException(
          "rank %d has no queue pair for rank %d".formatted(pair.peer(), talk.rank()),
          Failure.remedy("let all ranks run the same version of mkernel").withPeer(pair.peer()));
    }
    pair.connect(adapter, remote, ofPeer[0], ofPeer[1]);
  }
}
