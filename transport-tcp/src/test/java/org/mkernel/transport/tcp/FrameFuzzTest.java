package org.mkernel.transport.tcp;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Frames of a peer that is broken or hostile write nowhere but where they were announced to. */
final class FrameFuzzTest {
  private static final int PEER = 1;
  private static final long ROWS = 3;
  private static final long ROW_BYTES = 40;
  private static final long PITCH = 64;
  private static final int MEMORY_BYTES = 1024;
  private static final long TARGET = 256;
  private static final long FLAG = 8;

  private final Arena arena = Arena.ofShared();
  private final MemorySegment memory = arena.allocate(MEMORY_BYTES, 64);
  private SocketChannel sender;
  private SocketChannel receiver;

  @BeforeEach
  void connect() throws IOException {
    try (ServerSocketChannel server = ServerSocketChannel.open()) {
      server.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
      sender = SocketChannel.open(server.getLocalAddress());
      receiver = server.accept();
      receiver.configureBlocking(false);
    }
    memory.fill((byte) 0);
  }

  @AfterEach
  void close() throws IOException {
    sender.close();
    receiver.close();
    arena.close();
  }

  private ReceiveStream stream(Inbox inbox) {
    return new ReceiveStream(PEER, receiver, inbox, ByteBuffer.allocateDirect(64));
  }

  /** An inbox with operation 1, transfer 0 of the peer: three rows with gaps, then a flag. */
  private Inbox inbox() {
    long bytes = ROWS * ROW_BYTES;
    Incoming incoming =
        new Incoming(
            PEER,
            new FlagGate(memory.address() + FLAG),
            List.of(
                Memory.views(memory.address() + TARGET, PITCH, ROW_BYTES, ROWS, 0, 50),
                Memory.views(memory.address() + TARGET, PITCH, ROW_BYTES, ROWS, 50, bytes)),
            new long[] {50, bytes - 50});
    Inbox inbox = new Inbox();
    inbox.open(new Inbox.Table(1, List.of(Map.of(), Map.of(0, incoming))));
    return inbox;
  }

  private static byte[] frame(int channel, int transfer, int piece, long epoch, int length) {
    ByteBuffer header = ByteBuffer.allocate(FrameHeader.BYTES);
    FrameHeader.put(header, channel, transfer, piece, epoch, length);
    byte[] payload = new byte[length];
    java.util.Arrays.fill(payload, (byte) (epoch + 1));
    return ByteBuffer.allocate(FrameHeader.BYTES + length).put(header).put(payload).array();
  }

  private void send(byte[] bytes) throws IOException {
    ByteBuffer out = ByteBuffer.wrap(bytes);
    while (out.hasRemaining()) {
      sender.write(out);
    }
  }

  /** Receives until nothing has come for some turns. */
  private static void receive(ReceiveStream stream) throws IOException {
    for (int i = 0; i < 20; i++) {
      stream.receive(1 << 20);
    }
  }

  private long flag() {
    return memory.get(ValueLayout.JAVA_LONG, FLAG);
  }

  private void assertOnlyTargetsChanged() {
    for (long at = 0; at < MEMORY_BYTES; at++) {
      boolean target =
          at >= TARGET && at < TARGET + ROWS * PITCH && (at - TARGET) % PITCH < ROW_BYTES;
      boolean flag = at >= FLAG && at < FLAG + 8;
      if (!target && !flag) {
        assertThat(memory.get(ValueLayout.JAVA_BYTE, at)).as("byte %d", at).isZero();
      }
    }
  }

  @Test
  void theFlagIsRaisedAfterAllPiecesInAnyOrderAndCut() throws IOException {
    ReceiveStream stream = stream(inbox());
    Random random = new Random(1);
    for (long epoch = 1; epoch <= 200; epoch++) {
      boolean first = random.nextBoolean();
      byte[] one = first ? frame(1, 0, 0, epoch, 50) : frame(1, 0, 1, epoch, 70);
      byte[] two = first ? frame(1, 0, 1, epoch, 70) : frame(1, 0, 0, epoch, 50);
      int cut = random.nextInt(one.length);
      send(java.util.Arrays.copyOf(one, cut));
      receive(stream);
      send(java.util.Arrays.copyOfRange(one, cut, one.length));
      receive(stream);
      assertThat(flag()).isEqualTo(epoch - 1);
      send(two);
      receive(stream);
      assertThat(flag()).isEqualTo(epoch);
      for (long row = 0; row < ROWS; row++) {
        assertThat(memory.get(ValueLayout.JAVA_BYTE, TARGET + row * PITCH + ROW_BYTES - 1))
            .isEqualTo((byte) (epoch + 1));
      }
    }
    assertOnlyTargetsChanged();
  }

  @Test
  void garbageEndsTheConnectionAndWritesNowhereElse() throws IOException {
    Random random = new Random(2);
    int refused = 0;
    for (int round = 0; round < 300; round++) {
      ReceiveStream stream = stream(inbox());
      byte[] valid = frame(1, 0, round % 2, 1, round % 2 == 0 ? 50 : 70);
      byte[] bytes = valid.clone();
      for (int flips = 1 + random.nextInt(3); flips > 0; flips--) {
        bytes[random.nextInt(FrameHeader.BYTES)] = (byte) random.nextInt();
      }
      if (round % 10 == 0) {
        random.nextBytes(bytes);
      }
      send(bytes);
      try {
        receive(stream);
      } catch (IOException e) {
        refused++;
      }
      assertOnlyTargetsChanged();
      close(sender, receiver);
      connect();
    }
    assertThat(refused).isGreaterThan(250);
  }

  private static void close(SocketChannel... channels) throws IOException {
    for (SocketChannel channel : channels) {
      channel.close();
    }
  }

  @Test
  void flagsGoUpInOrderWhateverComesFirst() throws IOException {
    FlagGate gate = new FlagGate(memory.address() + FLAG);
    Random random = new Random(4);
    long expected = 0;
    for (int block = 0; block < 100; block++) {
      java.util.List<Long> epochs = new java.util.ArrayList<>();
      for (long epoch = 1; epoch <= 64; epoch++) {
        epochs.add(64L * block + epoch);
      }
      java.util.Collections.shuffle(epochs, random);
      java.util.Set<Long> here = new java.util.HashSet<>();
      for (long epoch : epochs) {
        gate.complete(epoch);
        here.add(epoch);
        while (here.contains(expected + 1)) {
          expected++;
        }
        assertThat(flag()).isEqualTo(expected);
      }
    }
    org.assertj.core.api.Assertions.assertThatThrownBy(() -> gate.complete(6400))
        .isInstanceOf(IOException.class);
    org.assertj.core.api.Assertions.assertThatThrownBy(() -> gate.complete(6465))
        .isInstanceOf(IOException.class);
  }

  @Test
  void aRepeatedFrameIsRefused() throws IOException {
    ReceiveStream stream = stream(inbox());
    send(frame(1, 0, 0, 3, 50));
    receive(stream);
    send(frame(1, 0, 0, 3, 50));
    org.assertj.core.api.Assertions.assertThatThrownBy(() -> receive(stream))
        .isInstanceOf(IOException.class)
        .hasMessageContaining("was not announced");
  }

  @Test
  void framesOfAClosedOperationAreReadAway() throws IOException {
    Inbox inbox = new Inbox();
    Inbox.Table closed = new Inbox.Table(1, List.of(Map.of(), Map.of()));
    inbox.open(closed);
    inbox.close(closed);
    ReceiveStream stream = stream(inbox);
    send(frame(1, 0, 0, 1, 900));
    send(frame(1, 5, 0, 1, 0));
    receive(stream);
    assertOnlyTargetsChanged();
    send(frame(2, 0, 0, 1, 10));
    org.assertj.core.api.Assertions.assertThatThrownBy(() -> receive(stream))
        .isInstanceOf(IOException.class)
        .hasMessageContaining("operation 2, which is not open");
  }

  @Test
  void anotherKeyIsFoundOutOnBothSides() throws Exception {
    receiver.configureBlocking(true);
    byte[] key = new byte[32];
    byte[] other = new byte[32];
    other[31] = 1;
    Exception[] thrown = new Exception[1];
    Thread listens =
        Thread.ofPlatform()
            .start(() -> {
              try {
                var _ = Handshake.accept(receiver.socket(), key, deadline());
              } catch (IOException e) {
                thrown[0] = e;
              }
              try {
                receiver.close();
              } catch (IOException e) {
                thrown[0] = e;
              }
            });
    org.assertj.core.api.Assertions.assertThatThrownBy(
            () -> new Handshake(0, 0).offer(sender.socket(), other, deadline()))
        .isInstanceOf(IOException.class);
    listens.join();
    assertThat(thrown[0]).hasMessageContaining("does not know the key");
  }

  @Test
  void slowHandshakesEndInTime() throws Exception {
    receiver.configureBlocking(true);
    send(new byte[] {1, 2, 3});
    long start = System.nanoTime();
    org.assertj.core.api.Assertions.assertThatThrownBy(
            () -> Handshake.accept(receiver.socket(), new byte[32], start + 100_000_000L))
        .isInstanceOf(IOException.class);
  }

  private static long deadline() {
    return System.nanoTime() + 5_000_000_000L;
  }

  @Test
  void piecesCoverATransferOnce() {
    Random random = new Random(3);
    for (int i = 0; i < 1000; i++) {
      long bytes = random.nextLong(1L << random.nextInt(1, 40));
      int streams = 1 + random.nextInt(8);
      int count = Pieces.count(bytes, streams);
      assertThat(count).isBetween(1, streams);
      assertThat(Pieces.start(bytes, count, 0)).isZero();
      assertThat(Pieces.start(bytes, count, count)).isEqualTo(bytes);
      for (int piece = 0; piece < count; piece++) {
        assertThat(Pieces.start(bytes, count, piece + 1))
            .isGreaterThanOrEqualTo(Pieces.start(bytes, count, piece));
      }
    }
  }
}
