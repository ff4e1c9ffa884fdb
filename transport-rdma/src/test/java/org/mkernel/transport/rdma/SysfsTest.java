package org.mkernel.transport.rdma;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.mkernel.api.Availability;
import org.mkernel.api.UnavailableException;
import org.mkernel.api.UsageException;

/** What is read of machines, on made-up file trees; each fault that can be seen there. */
final class SysfsTest {
  private static final String LINK_LOCAL = "fe80:0000:0000:0000:0099:00ff:fe00:0001";
  private static final String IPV4 = "0000:0000:0000:0000:0000:ffff:0a63:0001";
  private static final String IPV6 = "2001:0db8:0000:0000:0000:0000:0000:0001";
  private static final String UNSET = "0000:0000:0000:0000:0000:0000:0000:0000";

  @TempDir Path root;

  private void write(String file, String text) throws IOException {
    Path path = root.resolve(file);
    Files.createDirectories(path.getParent());
    Files.writeString(path, text + "\n");
  }

  private void adapter(String name, int number, String state, String link) throws IOException {
    String port = "sys/class/infiniband/%s/ports/1/".formatted(name);
    write(port + "state", state);
    write(port + "link_layer", link);
    write("sys/class/infiniband_verbs/uverbs%d/ibdev".formatted(number), name);
    write("dev/infiniband/uverbs" + number, "");
  }

  private void gid(String adapter, int index, String gid, String type) throws IOException {
    String port = "sys/class/infiniband/%s/ports/1/".formatted(adapter);
    write(port + "gids/" + index, gid);
    if (!type.isEmpty()) {
      write(port + "gid_attrs/types/" + index, type);
    }
  }

  private Sysfs sysfs() {
    return new Sysfs(root.resolve("sys"), root.resolve("dev"));
  }

  private Availability availability() {
    return new RdmaTransport(
            sysfs(), root.resolve("proc"), () -> new Availability.Available("a library"))
        .availability();
  }

  private String unavailable() {
    assertThat(availability()).isInstanceOf(Availability.Unavailable.class);
    return availability().describe();
  }

  private void limits(String capabilities, String memory) throws IOException {
    write("proc/self/status", "Name:\tjava\nCapEff:\t" + capabilities);
    write(
        "proc/self/limits",
        "Limit                     Soft Limit           Hard Limit           Units\n"
            + "Max locked memory         %-20s %-20s bytes".formatted(memory, memory));
  }

  @Test
  void isAvailableWithAnActivePort() throws IOException {
    adapter("mlx5_10", 2, "4: ACTIVE", "InfiniBand");
    adapter("mlx5_2", 1, "4: ACTIVE", "InfiniBand");
    adapter("mlx5_1", 0, "1: DOWN", "InfiniBand");
    assertThat(availability().describe())
        .contains(
            "[mlx5_1 [port 1 down], mlx5_2 [port 1 active], mlx5_10 [port 1 active]]",
            "no limit of locked memory");
  }

  @Test
  void saysWhatIsMissing() throws IOException {
    assertThat(unavailable()).contains("no RDMA adapter", "class/infiniband");
    adapter("mlx5_0", 0, "1: DOWN", "Ethernet");
    assertThat(unavailable()).contains("no port is active", "mlx5_0 [port 1 down]");
    adapter("mlx5_0", 0, "4: ACTIVE", "Ethernet");
    Files.delete(root.resolve("dev/infiniband/uverbs0"));
    assertThat(unavailable()).contains("uverbs0 of adapter mlx5_0 is missing");
    Files.delete(root.resolve("sys/class/infiniband_verbs/uverbs0/ibdev"));
    assertThat(unavailable()).contains("mlx5_0 has no device file", "ib_uverbs");
  }

  @Test
  void looksAtTheLimitOfLockedMemoryFirst() throws IOException {
    adapter("mlx5_0", 0, "4: ACTIVE", "Ethernet");
    limits("0000000000000000", "65536");
    assertThat(unavailable()).contains("locked memory of 64 KiB", "16384 KiB", "ulimit -l");
    limits("0000000000000000", "67108864");
    assertThat(availability().describe()).contains("locked memory of 65536 KiB");
    limits("0000000000000000", "unlimited");
    assertThat(availability().describe()).contains("no limit of locked memory");
    // Who has the capability, as root has, may exceed the limit.
    limits("000001ffffffffff", "65536");
    assertThat(availability().describe()).contains("no limit of locked memory");
  }

  @Test
  void reportsALibraryThatDoesNotLoad() throws IOException {
    adapter("mlx5_0", 0, "4: ACTIVE", "Ethernet");
    Availability missing = new Availability.Unavailable("no libibverbs", "install it");
    assertThat(new RdmaTransport(sysfs(), root.resolve("proc"), () -> missing).availability())
        .isEqualTo(missing);
  }

  @Test
  void readsTheTableOfGids() throws IOException {
    gid("rxe0", 0, LINK_LOCAL, "RoCE v2");
    gid("rxe0", 1, UNSET, "");
    gid("rxe0", 2, IPV4, "IB/RoCE v1");
    gid("rxe0", 3, IPV4, "RoCE v2");
    assertThat(sysfs().gids("rxe0", 1))
        .extracting(Gid::toString)
        .containsExactly(
            "0: " + LINK_LOCAL + " (RoCE v2, link-local)",
            "2: 10.99.0.1 (IB/RoCE v1)",
            "3: 10.99.0.1 (RoCE v2)");
    assertThat(sysfs().gids("none", 1)).isEmpty();
  }

  @Test
  void choosesARoutableGidOfRoceV2() {
    Gid linkLocal = new Gid(0, LINK_LOCAL, "RoCE v2");
    Gid v1 = new Gid(1, IPV4, "IB/RoCE v1");
    Gid ipv6 = new Gid(2, IPV6, "RoCE v2");
    Gid ipv4 = new Gid(3, IPV4, "RoCE v2");
    Gid later = new Gid(4, IPV4, "RoCE v2");
    Gid unset = new Gid(5, UNSET, "RoCE v2");
    assertThat(choose(-1, linkLocal, v1, ipv6, ipv4, later, unset)).isEqualTo(ipv4);
    assertThat(choose(-1, linkLocal, v1, ipv6)).isEqualTo(ipv6);
    assertThat(choose(0, linkLocal, ipv4)).isEqualTo(linkLocal);
    assertThat(choose(1, linkLocal, v1, ipv4)).isEqualTo(v1);
    assertThatThrownBy(() -> choose(-1, linkLocal, v1, unset))
        .isInstanceOfSatisfying(
            UnavailableException.class,
            e -> assertThat(e.failure().remedy().orElseThrow()).contains("rdma.gid-index"))
        .hasMessageContaining("port 1 of rxe0 has no usable GID")
        .hasMessageContaining("link-local")
        .hasMessageContaining("IB/RoCE v1");
    assertThatThrownBy(() -> choose(5, linkLocal, unset))
        .isInstanceOf(UsageException.class)
        .hasMessageContaining("option rdma.gid-index is 5, an empty entry");
    assertThatThrownBy(() -> choose(-1)).isInstanceOf(UnavailableException.class);
  }

  private static Gid choose(int index, Gid... table) {
    return GidChoice.choose("port 1 of rxe0", List.of(table), index, RdmaOptions.GID_INDEX);
  }

  @Test
  void spreadsRanksOverAdapters() throws IOException {
    adapter("mlx5_0", 0, "4: ACTIVE", "Ethernet");
    adapter("mlx5_1", 1, "1: DOWN", "Ethernet");
    adapter("mlx5_2", 2, "4: ACTIVE", "Ethernet");
    List<Sysfs.AdapterFacts> all = sysfs().adapters();
    RdmaOptions automatic = RdmaOptions.parse(Map.of());
    assertThat(Adapter.choose(all, automatic, 0).name()).isEqualTo("mlx5_0");
    assertThat(Adapter.choose(all, automatic, 1).name()).isEqualTo("mlx5_2");
    assertThat(Adapter.choose(all, automatic, 2).name()).isEqualTo("mlx5_0");
    RdmaOptions named = RdmaOptions.parse(Map.of("rdma.device", "mlx5_2, mlx5_9"));
    assertThat(Adapter.choose(all, named, 4).name()).isEqualTo("mlx5_2");
    assertThatThrownBy(() -> Adapter.choose(all, named, 1))
        .isInstanceOf(UsageException.class)
        .hasMessageContaining("mlx5_9")
        .hasMessageContaining("mlx5_0");
    assertThatThrownBy(() -> Adapter.choose(List.of(), automatic, 0))
        .isInstanceOf(UnavailableException.class);
  }
}
