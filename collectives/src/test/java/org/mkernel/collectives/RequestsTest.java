package org.mkernel.collectives;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.mkernel.api.DType;
import org.mkernel.api.MismatchException;
import org.mkernel.api.UsageException;
import org.mkernel.api.schedule.Topology;
import org.mkernel.api.spi.CollectiveProvider.Request;
import org.mkernel.api.spi.CollectiveProvider.Shape;
import org.mkernel.api.spi.Problem;

/**
 * What {@code problem} finds in what ranks ask for: 7 × 5 of A over 2 × 2 ranks, 3 columns each.
 */
final class RequestsTest {
  private static final AllGatherGemmProvider GEMM = new AllGatherGemmProvider();
  private static final Topology WORLD = Topology.of(2, 2);

  private final Map<Integer, Map<String, Shape>> changed = new HashMap<>();
  private Map<String, String> options = Map.of();

  private static Shape f32(long rows, long columns) {
    return new Shape(DType.F32, rows, columns);
  }

  private void change(int rank, String operand, Shape shape) {
    changed.computeIfAbsent(rank, r -> new HashMap<>()).put(operand, shape);
  }

  private List<Request> requests() {
    return IntStream.range(0, WORLD.size())
        .mapToObj(rank -> {
          Map<String, Shape> operands = new HashMap<>();
          operands.put("a", f32(rank == 3 ? 1 : 2, 5));
          operands.put("b", f32(5, 3));
          operands.put("c", f32(7, 3));
          operands.putAll(changed.getOrDefault(rank, Map.of()));
          return new Request(operands, options);
        })
        .toList();
  }

  private Problem problem() {
    return GEMM.problem(WORLD, requests());
  }

  @Test
  void findsSizes() {
    options = Map.of("epilogue", "relu");
    assertThat(problem())
        .isEqualTo(
            new Problem(
                "all-gather-gemm", WORLD, DType.F32, Map.of("m", 7L, "n", 3L, "k", 5L), options));
  }

  @Test
  void findsSizesOfTransposedAndBiased() {
    options = Map.of("transpose-b", "true", "bias", "true");
    for (int rank = 0; rank < 4; rank++) {
      change(rank, "b", f32(3, 5));
      change(rank, "bias", f32(1, 3));
    }
    assertThat(problem().sizes()).isEqualTo(Map.of("m", 7L, "n", 3L, "k", 5L));
  }

  @Test
  void ranksWithoutRowsMayHoldAnyEmptyShape() {
    change(1, "a", f32(0, 0));
    change(2, "a", f32(0, 5));
    change(3, "a", f32(0, 9));
    change(0, "a", f32(1, 5));
    for (int rank = 0; rank < 4; rank++) {
      change(rank, "c", f32(1, 3));
    }
    assertThat(problem().size("m")).isEqualTo(1);
  }

  private void assertMismatch(int peer, String message) {
    MismatchException mismatch = catchThrowableOfType(MismatchException.class, this::problem);
    assertThat(mismatch).hasMessage("all-gather-gemm: " + message);
    assertThat(mismatch.failure().peer()).hasValue(peer);
    assertThat(mismatch.failure().operation()).hasValue("all-gather-gemm");
  }

  @Test
  void anotherBNamesBothShapes() {
    change(2, "b", f32(5, 4));
    assertMismatch(
        2,
        "rank 2 has b of f32 5 x 4, rank 0 has f32 5 x 3; for {k=5, m=7, n=3} over 4 ranks rank 2"
            + " must have f32 5 x 3");
  }

  @Test
  void rowsDealtOutOtherwiseNameBothShapes() {
    change(1, "a", f32(1, 5));
    change(3, "a", f32(2, 5));
    assertMismatch(
        1,
        "rank 1 has a of f32 1 x 5, rank 0 has f32 2 x 5; for {k=5, m=7, n=3} over 4 ranks rank 1"
            + " must have f32 2 x 5");
  }

  @Test
  void rankZeroMayBeTheOneToBlame() {
    change(0, "a", f32(1, 5));
    change(3, "a", f32(2, 5));
    assertMismatch(
        0,
        "rank 0 has a of f32 1 x 5, rank 1 has f32 2 x 5; for {k=5, m=7, n=3} over 4 ranks rank 0"
            + " must have f32 2 x 5");
  }

  @Test
  void anotherTypeNamesBothShapes() {
    change(3, "c", new Shape(DType.BF16, 7, 3));
    assertMismatch(
        3,
        "rank 3 has c of bf16 7 x 3, rank 0 has f32 7 x 3; for {k=5, m=7, n=3} over 4 ranks rank 3"
            + " must have f32 7 x 3");
  }

  @Test
  void otherOptionsNameBoth() {
    List<Request> requests = new ArrayList<>(requests());
    requests.set(1, new Request(requests.get(1).operands(), Map.of("epilogue", "gelu")));
    assertThatThrownBy(() -> GEMM.problem(WORLD, requests))
        .isInstanceOf(MismatchException.class)
        .hasMessage("all-gather-gemm: rank 0 has options {}, rank 1 has options {epilogue=gelu}");
  }

  @Test
  void whatAllAgreeOnWronglyIsNoMismatch() {
    for (int rank = 0; rank < 4; rank++) {
      change(rank, "b", f32(6, 3));
    }
    assertThatThrownBy(this::problem)
        .isInstanceOf(UsageException.class)
        .hasMessage(
            "all-gather-gemm: b is f32 6 x 3; for {k=5, m=7, n=3} in f32 over 4 ranks it must be"
                + " f32 5 x 3");
  }

  @Test
  void missingAndSpareOperandsAreNamed() {
    change(2, "bias", f32(1, 3));
    assertThatThrownBy(this::problem)
        .isInstanceOf(UsageException.class)
        .hasMessage(
            "all-gather-gemm: rank 2 gives operands [bias], which it does not have; allowed are"
                + " [a, b, c]");
    changed.clear();
    options = Map.of("bias", "true");
    assertThatThrownBy(this::problem)
        .isInstanceOf(UsageException.class)
        .hasMessage("all-gather-gemm needs the operand bias; rank 0 gives [a, b, c]");
  }

  @Test
  void nothingToDoIsRefused() {
    for (int rank = 0; rank < 4; rank++) {
      change(rank, "a", f32(0, 5));
      change(rank, "c", f32(0, 3));
    }
    assertThatThrownBy(this::problem)
        .isInstanceOf(UsageException.class)
        .hasMessage("m is 0; it must be at least 1");
  }

  @Test
  void aWorldOfAnotherSizeIsRefused() {
    assertThatThrownBy(() -> GEMM.problem(Topology.of(1, 3), requests()))
        .isInstanceOf(UsageException.class)
        .hasMessage("all-gather-gemm: requests of 4 ranks for a world of 3");
  }

  @Test
  void gatherComparesToo() {
    AllGatherProvider gather = new AllGatherProvider();
    Request first = new Request(Map.of("a", f32(2, 5), "c", f32(3, 5)), Map.of());
    Request second = new Request(Map.of("a", f32(1, 5), "c", f32(3, 5)), Map.of());
    Request other = new Request(Map.of("a", f32(1, 5), "c", f32(3, 4)), Map.of());
    Topology world = Topology.of(2, 1);
    assertThat(gather.problem(world, List.of(first, second)).sizes())
        .isEqualTo(Map.of("m", 3L, "k", 5L));
    assertThatThrownBy(() -> gather.problem(world, List.of(first, other)))
        .isInstanceOf(MismatchException.class)
        .hasMessageContaining("rank 1 has c of f32 3 x 4, rank 0 has f32 3 x 5");
  }
}
