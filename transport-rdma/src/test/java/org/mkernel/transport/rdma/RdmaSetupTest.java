package org.mkernel.transport.rdma;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.mkernel.api.Failure;
import org.mkernel.api.MismatchException;
import org.mkernel.api.UnavailableException;
import org.mkernel.api.UsageException;
import org.mkernel.api.spi.OptionSpec;
import org.mkernel.api.spi.Span;
import org.mkernel.api.spi.Transfer;

/** What is decided before an adapter is touched: options, messages, regions, checks. */
final class RdmaSetupTest {
  private static final RdmaAddress ADDRESS =
      new RdmaAddress("port 1 of adapter rxe0", true, true, 0, 4096, "0".repeat(31) + "1");

  @Test
  void optionsHaveDefaultsThatParse() {
    RdmaOptions defaults = RdmaOptions.parse(Map.of("deadline", "3"));
    assertThat(defaults).isEqualTo(new RdmaOptions(List.of(), 0, -1, 0x7fff, 0, 0, 0, 20, 7, 256));
    for (OptionSpec spec : RdmaOptions.SPECS) {
      assertThat(RdmaOptions.parse(Map.of(spec.name(), spec.defaultValue()))).isEqualTo(defaults);
    }
    assertThat(RdmaOptions.parse(Map.of("rdma.pkey", "0x0001", "rdma.mtu", "1024")))
        .isEqualTo(new RdmaOptions(List.of(), 0, -1, 1, 0, 0, 1024, 20, 7, 256));
  }

  @Test
  void optionsThatAreWrongAreRefused() {
    for (Map<String, String> bad :
        List.of(
            Map.of("rdma.devices", "mlx5_0"),
            Map.of("rdma.device", "mlx5_0,,mlx5_1"),
            Map.of("rdma.device", "/dev/x"),
            Map.of("rdma.port", "0"),
            Map.of("rdma.gid-index", "-1"),
            Map.of("rdma.pkey", "0x8000"),
            Map.of("rdma.traffic-class", "256"),
            Map.of("rdma.service-level", "16"),
            Map.of("rdma.mtu", "1500"),
            Map.of("rdma.timeout", "32"),
            Map.of("rdma.retries", "8"),
            Map.of("rdma.depth", "two"))) {
      assertThatThrownBy(() -> RdmaOptions.parse(bad))
          .isInstanceOf(UsageException.class)
          .hasMessageContaining(bad.keySet().iterator().next())
          .hasMessageContaining(
              bad.values().iterator().next().startsWith("mlx5_0") ? "rdma" : "\"");
    }
  }

  @Test
  void offersTravelAndBadOnesAreRefused() {
    Offer offer = new Offer(ADDRESS, List.of(new Offer.Memory(4096, 64, -7)), List.of(1, 3));
    byte[] good = offer.encode();
    assertThat(Offer.decode(2, good)).isEqualTo(offer);
    for (int length = 0; length < good.length; length++) {
      byte[] cut = Arrays.copyOf(good, length);
      assertThatThrownBy(() -> Offer.decode(2, cut))
          .isInstanceOf(MismatchException.class)
          .hasMessageContaining("rank 2");
    }
    assertThatThrownBy(() -> Offer.decode(2, Arrays.copyOf(good, good.length + 1)))
        .isInstanceOf(MismatchException.class);
    good[7]++;
    assertThatThrownBy(() -> Offer.decode(2, good)).hasMessageContaining("version 2");
  }

  @Test
  void thePathTakesTheSmallerMtuAndOneKindOfLink() {
    RdmaAddress small =
        new RdmaAddress("port 1 of adapter rxe1", true, true, 0, 1024, ADDRESS.gid());
    RdmaAddress infiniBand =
        new RdmaAddress("port 1 of adapter mlx5_0", false, false, 7, 4096, ADDRESS.gid());
    assertThat(ADDRESS.pathMtu(small)).isEqualTo(1024);
    assertThat(small.pathMtu(ADDRESS)).isEqualTo(1024);
    assertThatThrownBy(() -> ADDRESS.requireLinkTo(infiniBand, Failure.UNKNOWN))
        .isInstanceOf(MismatchException.class)
        .hasMessageContaining("rxe0 is Ethernet, port 1 of adapter mlx5_0 is InfiniBand");
  }

  @Test
  void allRanksFailWithTheOneThatFails() {
    byte[] failure = ("\1" + "no usable GID").getBytes(StandardCharsets.UTF_8);
    Talk talk = new Talk(0, "all-gather", own -> List.of(own, failure));
    assertThatThrownBy(() -> talk.round(() -> new byte[] {7}))
        .isInstanceOfSatisfying(
            UnavailableException.class, e -> assertThat(e.failure().peer()).hasValue(1))
        .hasMessage("all-gather: rank 1 can't connect by RDMA: no usable GID");
    UsageException own = new UsageException("mine");
    assertThatThrownBy(() ->
            talk.round(() -> {
              throw own;
            }))
        .isSameAs(own);
    assertThat(new Talk(0, "x", one -> List.of(one)).round(() -> new byte[] {7, 8}).getFirst())
        .containsExactly(7, 8);
  }

  private static Transfer transfer(long source, long pitch, long rows, long rowBytes) {
    return new Transfer(1, source, pitch, 1, 0, pitch, rows, rowBytes, 8);
  }

  @Test
  void sourcesThatTouchAreOneRegion() {
    long page = 1 << 20;
    assertThat(
            MemoryRegions.merge(
                List.of(
                    transfer(page + 100, 50, 3, 20),
                    transfer(page, 100, 1, 100),
                    transfer(page + 2000, 8, 1, 8),
                    transfer(page + 16384, 8, 2, 8))))
        .containsExactly(new Span(page, 2008), new Span(page + 16384, 16));
  }

  @Test
  void transfersThatDoNotFitAreRefused() {
    TransferCheck check = new TransferCheck("test", 0, 2);
    List<Offer.Memory> peer = List.of(new Offer.Memory(64, 64, 1), new Offer.Memory(128, 256, 2));
    Transfer good = new Transfer(1, 4096, 64, 1, 64, 64, 3, 64, 56);
    check.requireSound(0, good);
    check.requireFit(0, good, peer);
    for (Transfer bad :
        List.of(
            new Transfer(0, 4096, 64, 1, 0, 64, 1, 64, 0),
            new Transfer(2, 4096, 64, 1, 0, 64, 1, 64, 0),
            new Transfer(1, 0, 64, 1, 0, 64, 1, 64, 0),
            new Transfer(1, 4096, 63, 1, 0, 64, 2, 64, 0),
            new Transfer(1, 4096, 64, 1, 0, 63, 2, 64, 0),
            new Transfer(1, 4096, 64, 1, -8, 64, 1, 64, 0),
            new Transfer(1, 4096, 64, 1, 0, 64, 1, 64, 4))) {
      assertThatThrownBy(() -> check.requireSound(5, bad))
          .isInstanceOf(UsageException.class)
          .hasMessageContaining("transfer 5 of test on rank 0");
    }
    for (Transfer bad :
        List.of(
            new Transfer(1, 4096, 64, 2, 0, 64, 1, 64, 0),
            new Transfer(1, 4096, 64, 1, 65, 64, 3, 64, 0),
            new Transfer(1, 4096, 64, 1, 0, Long.MAX_VALUE / 2, 3, 64, 0),
            new Transfer(1, 4096, 64, 1, Long.MAX_VALUE - 10, 64, 1, 64, 0),
            new Transfer(1, 4096, 64, 1, 0, 64, 1, 64, 64))) {
      assertThatThrownBy(() -> check.requireFit(5, bad, peer))
          .isInstanceOf(MismatchException.class)
          .hasMessageContaining("transfer 5 of test from rank 0 to rank 1 does not fit");
    }
  }

  @Test
  void workRequestsNameTheirTransfer() {
    long id = PreparedTransfers.workId(3, Integer.MAX_VALUE);
    assertThat(PreparedTransfers.pairOf(id)).isEqualTo(3);
    assertThat(PreparedTransfers.transferOf(id)).isEqualTo(Integer.MAX_VALUE);
  }
}
