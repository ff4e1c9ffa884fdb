package org.mkernel.testsuite;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BiConsumer;
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;
import org.mkernel.api.Config;
import org.mkernel.api.MKernel;
import org.mkernel.api.World;

/** Ranks that join as processes do, each with an mkernel of its own, but as threads of this one. */
final class JoinedRanks {
  private JoinedRanks() {}

  static int freePort() {
    try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      return socket.getLocalPort();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  static Config config(Config config, int rank, int size, int ranksPerNode, int port) {
    return config
        .option("rank", Integer.toString(rank))
        .option("world-size", Integer.toString(size))
        .option("node", Integer.toString(rank / ranksPerNode))
        .option("rendezvous", "127.0.0.1:" + port)
        .option("join-deadline", "30");
  }

  /**
   * Runs all ranks of a world.
   *
   * @param body runs in each with its world
   * @return by rank, what it threw; null for nothing
   */
  static List<@Nullable Throwable> run(
      Config config, int nodes, int ranksPerNode, BiConsumer<MKernel, World> body)
      throws InterruptedException {
    int size = nodes * ranksPerNode;
    int port = freePort();
    return runEach(
        size,
        rank -> config(config, rank, size, ranksPerNode, port),
        (mkernel, world) -> {
          assertThat(world.topology().nodes()).isEqualTo(nodes);
          body.accept(mkernel, world);
        });
  }

  /**
   * Runs all ranks of a world, each with settings of its own.
   *
   * @param config the settings of a rank
   * @param body runs in each with its world
   * @return by rank, what it threw; null for nothing
   */
  static List<@Nullable Throwable> runEach(
      int size, IntFunction<Config> config, BiConsumer<MKernel, World> body)
      throws InterruptedException {
    Throwable[] thrown = new Throwable[size];
    List<Thread> threads = new ArrayList<>();
    for (int rank = 0; rank < size; rank++) {
      int index = rank;
      threads.add(
          Thread.ofPlatform()
              .start(() -> {
                try (MKernel mkernel = MKernel.open(config.apply(index));
                    World world = mkernel.join()) {
                  assertThat(world.size()).isEqualTo(size);
                  assertThat(world.localRanks()).hasSize(1);
                  body.accept(mkernel, world);
                } catch (Throwable e) {
                  thrown[index] = e;
                }
              }));
    }
    for (Thread thread : threads) {
      assertThat(thread.join(Duration.ofMinutes(2))).isTrue();
    }
    List<@Nullable Throwable> all = new ArrayList<>();
    for (Throwable e : thrown) {
      all.add(e);
    }
    return all;
  }

  static void hasNone(List<@Nullable Throwable> thrown) {
    for (Throwable e : thrown) {
      if (e != null) {
        throw new AssertionError("a rank failed", e);
      }
    }
  }
}
