package org.mkernel.runtime.join;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.mkernel.api.Failure;
import org.mkernel.api.PeerLostException;

/** What the bytes of strangers and of networks can do to the protocol: nothing. Seeds are fixed. */
final class FrameFuzzTest {
  private static final byte[] KEY =
      "a key of the tests".getBytes(java.nio.charset.StandardCharsets.UTF_8);

  private static List<byte[]> payloads(Random random, int count, int most) {
    List<byte[]> all = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      byte[] payload = new byte[random.nextInt(most + 1)];
      random.nextBytes(payload);
      all.add(payload);
    }
    return all;
  }

  private static byte[] join(List<byte[]> parts) {
    ByteBuffer all = ByteBuffer.allocate(parts.stream().mapToInt(p -> p.length).sum());
    parts.forEach(all::put);
    return all.array();
  }

  private static List<byte[]> sealed(List<byte[]> payloads) {
    Seal seal = new Seal(KEY);
    return payloads.stream().map(p -> FrameDecoder.encode((byte) 7, p, seal)).toList();
  }

  /** What a decoder with the right key makes of a stream that comes in pieces. */
  private static List<byte[]> decode(byte[] stream, Random random) throws ProtocolException {
    List<byte[]> decoded = new ArrayList<>();
    decode(stream, random, decoded);
    return decoded;
  }

  private static void decode(byte[] stream, Random random, List<byte[]> decoded)
      throws ProtocolException {
    FrameDecoder decoder = new FrameDecoder(Message.MAX_HANDSHAKE);
    decoder.seal(new Seal(KEY), 1 << 20);
    for (int at = 0; at < stream.length; ) {
      int count = Math.min(stream.length - at, 1 + random.nextInt(random.nextBoolean() ? 3 : 4000));
      ByteBuffer in = ByteBuffer.wrap(stream, at, count);
      for (FrameDecoder.Frame f = decoder.next(in); f != null; f = decoder.next(in)) {
        assertThat(f.type()).isEqualTo((byte) 7);
        decoded.add(f.payload());
      }
      at += count;
    }
  }

  @Test
  void framesSurviveAnyCutting() throws Exception {
    Random random = new Random(1);
    for (int i = 0; i < 200; i++) {
      List<byte[]> payloads = payloads(random, 1 + random.nextInt(8), i % 3 == 0 ? 40_000 : 40);
      assertThat(decode(join(sealed(payloads)), random)).containsExactlyElementsOf(payloads);
    }
  }

  @Test
  void noBitCanBeChanged() {
    Random random = new Random(2);
    for (int i = 0; i < 2000; i++) {
      List<byte[]> payloads = payloads(random, 3, 30);
      byte[] stream = join(sealed(payloads));
      int bit = random.nextInt(8 * stream.length);
      stream[bit / 8] ^= (byte) (1 << bit % 8);
      List<byte[]> decoded = new ArrayList<>();
      try {
        decode(stream, random, decoded);
        // Only a length that grew may still wait for more bytes; nothing wrong came through.
        assertThat(decoded.size()).isLessThan(3);
      } catch (ProtocolException e) {
        assertThat(e).hasMessageContaining("frame");
      }
      assertThat(decoded).containsExactlyElementsOf(payloads.subList(0, decoded.size()));
    }
  }

  @Test
  void framesCannotBeRepeatedLeftOutOrMoved() {
    Random random = new Random(3);
    for (int i = 0; i < 500; i++) {
      List<byte[]> frames = new ArrayList<>(sealed(payloads(random, 4, 30)));
      switch (i % 3) {
        case 0 -> frames.add(1 + random.nextInt(3), frames.get(0));
        case 1 -> frames.remove(random.nextInt(3));
        default -> frames.add(0, frames.remove(1 + random.nextInt(3)));
      }
      assertThatThrownBy(() -> decode(join(frames), random))
          .isInstanceOf(ProtocolException.class)
          .hasMessageContaining("seal does not fit");
    }
  }

  @Test
  void garbageIsThrownOutAndHoldsNoMemory() {
    Random random = new Random(4);
    for (int i = 0; i < 5000; i++) {
      byte[] garbage = new byte[1 + random.nextInt(3000)];
      random.nextBytes(garbage);
      if (i % 2 == 0) {
        // A length that is allowed, so that the decoder goes on.
        ByteBuffer.wrap(garbage.length < 4 ? new byte[4] : garbage)
            .putInt(1 + random.nextInt(Message.MAX_HANDSHAKE));
      }
      FrameDecoder decoder = new FrameDecoder(Message.MAX_HANDSHAKE);
      ByteBuffer in = ByteBuffer.wrap(garbage);
      try {
        while (decoder.next(in) != null) {
          assertThat(in.position()).isPositive();
        }
      } catch (ProtocolException e) {
        assertThat(e).hasMessageContaining("a frame of");
      }
      assertThat(decoder.held()).isLessThanOrEqualTo(2 * Message.MAX_HANDSHAKE);
    }
  }

  @Test
  void roomGrowsWithWhatArrives() throws Exception {
    FrameDecoder decoder = new FrameDecoder(Message.MAX_HANDSHAKE);
    decoder.seal(new Seal(KEY), Message.MAX_PAYLOAD);
    ByteBuffer in = ByteBuffer.allocate(2000).putInt(Message.MAX_PAYLOAD).position(0);
    assertThat(decoder.next(in)).isNull();
    assertThat(decoder.held()).isLessThan(5000);
  }

  /** Something that reads what a peer wrote. */
  private interface Codec {
    Object decode(byte[] bytes) throws ProtocolException;
  }

  @Test
  void messagesAreReadOrThrownOut() {
    Random random = new Random(6);
    List<byte[]> valid =
        List.of(
            new Handshake.Hello(1, 4, 2).encode(),
            new Handshake.Refusal(Handshake.Reason.SIZE, "words").encode(),
            FailureCodec.encode(
                new PeerLostException("gone", Failure.remedy("look").withRank(1).withTask("t"))),
            Parts.encode(3, new byte[][] {{1, 2}, null, {}}));
    List<Codec> codecs =
        List.of(
            Handshake.Hello::decode,
            Handshake.Refusal::decode,
            FailureCodec::decode,
            bytes -> Parts.decode(bytes, 3));
    for (int i = 0; i < 40_000; i++) {
      int which = i % codecs.size();
      byte[] bytes = valid.get(which).clone();
      if (random.nextInt(4) == 0) {
        bytes = Arrays.copyOf(bytes, random.nextInt(bytes.length + 5));
      }
      for (int flips = random.nextInt(4); flips > 0 && bytes.length > 0; flips--) {
        bytes[random.nextInt(bytes.length)] = (byte) random.nextInt();
      }
      try {
        assertThat(codecs.get(which).decode(bytes)).isNotNull();
      } catch (ProtocolException e) {
        assertThat(e.getMessage()).isNotEmpty();
      }
    }
  }

  @Test
  void proofsOfAnotherMeetingDoNotFit() {
    Secret secret = Secret.of("a secret of the tests, long enough");
    byte[] hello = new Handshake.Hello(1, 2, 1).encode();
    byte[] proof = Handshake.proof(secret, hello, Handshake.challenge());
    assertThat(Handshake.proves(secret, hello, Handshake.challenge(), proof)).isFalse();
    byte[] challenge = Handshake.challenge();
    byte[] welcome = Handshake.welcome(secret, hello, challenge, Handshake.nonce());
    assertThatThrownBy(() ->
            Handshake.checkWelcome(
                secret, new Handshake.Hello(1, 2, 1).encode(), challenge, welcome))
        .isInstanceOf(ProtocolException.class);
    // A proof of one side is none of the other.
    assertThat(Arrays.copyOf(welcome, Secret.BYTES))
        .isNotEqualTo(Handshake.proof(secret, hello, challenge));
  }
}
