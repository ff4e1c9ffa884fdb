package org.mkernel.runtime.join;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.mkernel.api.Config;
import org.mkernel.api.MKernelException;
import org.mkernel.api.MismatchException;
import org.mkernel.api.PeerLostException;

/**
 * What lies between ranks, or poses as rank 0, is at fault: each rank ends with the right words.
 */
final class RendezvousFaultsTest {
  private static final Config CONFIG = Config.defaults().option("join-deadline", "30");

  private static Launch launch(int rank, int port) {
    return new Launch(
        "explicit",
        rank,
        2,
        OptionalInt.empty(),
        Optional.of(new Endpoint("127.0.0.1", port)),
        List.of());
  }

  private static ServerSocket loopback() throws IOException {
    return new ServerSocket(0, 16, InetAddress.getLoopbackAddress());
  }

  /** What a rank threw: it ends in time for any machine, or the test fails. */
  private static CompletableFuture<MKernelException> run(
      Launch launch, Config config, Consumer<Membership> body) {
    CompletableFuture<MKernelException> thrown = new CompletableFuture<>();
    Thread.ofPlatform()
        .start(() -> {
          try (Membership membership = Membership.join(launch, config)) {
            body.accept(membership);
            thrown.completeExceptionally(new AssertionError("nothing was thrown"));
          } catch (MKernelException e) {
            thrown.complete(e);
          } catch (Throwable e) {
            thrown.completeExceptionally(e);
          }
        });
    return thrown.orTimeout(1, TimeUnit.MINUTES);
  }

  /** Somebody who listens where rank 0 should, and does something with each who comes. */
  private static final class Impostor implements AutoCloseable {
    private final ServerSocket server;
    private final List<Socket> open = new CopyOnWriteArrayList<>();

    private interface Answer {
      void to(Socket socket) throws IOException;
    }

    Impostor(Answer answer) throws IOException {
      server = loopback();
      Thread.ofPlatform()
          .start(() -> {
            while (!server.isClosed()) {
              try {
                Socket socket = server.accept();
                open.add(socket);
                answer.to(socket);
              } catch (IOException e) {
                // The rank has had enough, or the test is over.
              }
            }
          });
    }

    int port() {
      return server.getLocalPort();
    }

    @Override
    public void close() throws IOException {
      server.close();
      for (Socket socket : open) {
        socket.close();
      }
    }
  }

  @Test
  void aRank0OfAnotherVersionIsNamed() throws Exception {
    byte[] refusal =
        FrameDecoder.encode(
            Message.REFUSAL,
            new Handshake.Refusal(Handshake.Reason.VERSION, "protocol version 1; rank 0 speaks 2")
                .encode(),
            null);
    try (Impostor newer = new Impostor(socket -> socket.getOutputStream().write(refusal))) {
      assertThat(run(launch(1, newer.port()), CONFIG, membership -> {}).get())
          .isInstanceOf(MismatchException.class)
          .hasMessage("rank 0 refuses rank 1: protocol version 1; rank 0 speaks 2")
          .satisfies(e -> assertThat(e.failure().remedy().orElseThrow()).contains("same version"));
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"silent", "garbage", "ends"})
  void whoIsNoRank0IsTriedUntilTheDeadline(String kind) throws Exception {
    Random random = new Random(3);
    try (Impostor impostor =
        new Impostor(socket -> {
          switch (kind) {
            case "garbage" -> {
              byte[] garbage = new byte[500];
              random.nextBytes(garbage);
              socket.getOutputStream().write(garbage);
            }
            case "ends" -> socket.close();
            default -> {
              // Half open: it never answers.
            }
          }
        })) {
      MKernelException thrown =
          run(launch(1, impostor.port()), CONFIG.option("join-deadline", "0.4"), m -> {}).get();
      assertThat(thrown)
          .isInstanceOf(PeerLostException.class)
          .hasMessageContaining("rank 1 did not reach rank 0 at 127.0.0.1:" + impostor.port());
      assertThat(thrown.failure().peer()).hasValue(0);
    }
  }

  /** A wire between a rank and rank 0 that can be cut without either end being told. */
  private static final class Cable implements AutoCloseable {
    private final ServerSocket server;
    private final List<Socket> ends = new CopyOnWriteArrayList<>();
    private volatile boolean cut;

    Cable(int hub) throws IOException {
      server = loopback();
      Thread.ofPlatform()
          .start(() -> {
            while (!server.isClosed()) {
              try {
                Socket member = server.accept();
                ends.add(member);
                Socket other = connect(hub, member);
                ends.add(other);
                carry(member, other);
                carry(other, member);
              } catch (IOException e) {
                // Rank 0 does not listen yet, and the rank comes again; or the test is over.
              }
            }
          });
    }

    private static Socket connect(int hub, Socket member) throws IOException {
      boolean open = false;
      try {
        Socket socket = new Socket(InetAddress.getLoopbackAddress(), hub);
        open = true;
        return socket;
      } finally {
        if (!open) {
          member.close();
        }
      }
    }

    private void carry(Socket from, Socket to) {
      Thread.ofPlatform()
          .start(() -> {
            byte[] bytes = new byte[4096];
            // Sockets stay open: the end of one would tell the other.
            try {
              InputStream in = from.getInputStream();
              OutputStream out = to.getOutputStream();
              for (int n = in.read(bytes); n >= 0; n = in.read(bytes)) {
                if (!cut) {
                  out.write(bytes, 0, n);
                }
              }
            } catch (IOException e) {
              cut = true; // An end is gone: the ranks have seen all that they are here for.
            }
          });
    }

    @Override
    public void close() throws IOException {
      server.close();
      for (Socket socket : ends) {
        socket.close();
      }
    }
  }

  /** Neither end hears of the other, and neither connection is closed. */
  @Test
  void aHalfOpenConnectionIsNoticedAtBothEnds() throws Exception {
    Config config = CONFIG.option("deadline", "0.5");
    int port;
    try (ServerSocket free = loopback()) {
      port = free.getLocalPort();
    }
    CompletableFuture<Boolean> met = new CompletableFuture<>();
    CompletableFuture<MKernelException> rank0 =
        run(
            launch(0, port),
            config,
            membership -> {
              var _ = membership.allGather(new byte[0]);
              met.complete(true);
              var _ = membership.allGather(new byte[0]);
            });
    try (Cable cable = new Cable(port)) {
      CompletableFuture<MKernelException> rank1 =
          run(
              launch(1, cable.server.getLocalPort()),
              config,
              membership -> {
                var _ = membership.allGather(new byte[0]);
                met.join();
                cable.cut = true;
                var _ = membership.allGather(new byte[0]);
              });
      assertThat(rank0.get())
          .isInstanceOf(PeerLostException.class)
          .hasMessageContaining("rank 1 at")
          .hasMessageContaining("nothing was heard for");
      assertThat(rank0.get().failure().peer()).hasValue(1);
      assertThat(rank1.get())
          .isInstanceOf(PeerLostException.class)
          .hasMessageContaining("rank 0 at")
          .hasMessageContaining("nothing was heard for");
      assertThat(rank1.get().failure().peer()).hasValue(0);
    }
  }
}
