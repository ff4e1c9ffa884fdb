package org.mkernel.collectives;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.mkernel.api.Activation;
import org.mkernel.api.DType;
import org.mkernel.api.Tensor;
import org.mkernel.api.spi.CollectiveProvider;

final class OperationsTest {
  /** Only told apart. */
  private record NamedTensor(String name) implements Tensor {
    @Override
    public DType dtype() {
      return DType.F32;
    }

    @Override
    public long rows() {
      return 1;
    }

    @Override
    public long columns() {
      return 1;
    }

    @Override
    public long pitch() {
      return 4;
    }

    @Override
    public long address() {
      return 0;
    }

    @Override
    public void read(long offset, MemorySegment to) {}

    @Override
    public void write(long offset, MemorySegment from) {}

    @Override
    public void close() {}
  }

  private final Tensor a = new NamedTensor("a");
  private final Tensor b = new NamedTensor("b");
  private final Tensor c = new NamedTensor("c");
  private final Tensor bias = new NamedTensor("bias");

  @Test
  void operationsWithAProductAreImmutable() {
    for (GemmCollective<?> plain :
        List.of(
            AllGatherGemm.of(a, b, c), GemmAllReduce.of(a, b, c), GemmReduceScatter.of(a, b, c))) {
      GemmCollective<?> full =
          plain.bias(bias).epilogue(Activation.GELU).transposeB().option("chunk-rows", "7");
      assertThat(plain.operands()).isEqualTo(Map.of("a", a, "b", b, "c", c));
      assertThat(plain.options()).isEmpty();
      assertThat(full).hasSameClassAs(plain);
      assertThat(full.operator()).isEqualTo(plain.operator());
      assertThat(full.operands()).isEqualTo(Map.of("a", a, "b", b, "c", c, "bias", bias));
      assertThat(full.options())
          .isEqualTo(
              Map.of("bias", "true", "epilogue", "gelu", "transpose-b", "true", "chunk-rows", "7"));
    }
  }

  @Test
  void plainOperationsAreImmutable() {
    for (TypedCollective<?> plain :
        List.of(
            AllGather.of(a, c),
            AllReduce.of(a, c),
            AllToAll.of(a, c),
            Broadcast.of(a, c),
            ReduceScatter.of(a, c))) {
      assertThat(plain.option("chunk-rows", "7").options()).isEqualTo(Map.of("chunk-rows", "7"));
      assertThat(plain.option("chunk-rows", "7")).hasSameClassAs(plain);
      assertThat(plain.options()).isEmpty();
      assertThat(plain.operands()).isEqualTo(Map.of("a", a, "c", c));
    }
  }

  @Test
  void providersAreNamedAsTheirOperations() {
    assertThat(Problems.OPERATORS)
        .extracting(CollectiveProvider::name)
        .containsExactly(
            AllGatherGemm.NAME,
            AllGather.NAME,
            AllReduce.NAME,
            AllToAll.NAME,
            Broadcast.NAME,
            GemmAllReduce.NAME,
            GemmReduceScatter.NAME,
            ReduceScatter.NAME);
    assertThat(AllGather.class.getModule().getDescriptor()).isNotNull();
    assertThat(AllGather.class.getModule().getDescriptor().provides())
        .anySatisfy(provided -> {
          assertThat(provided.service()).isEqualTo(CollectiveProvider.class.getName());
          assertThat(provided.providers())
              .containsExactlyInAnyOrderElementsOf(
                  Problems.OPERATORS.stream().map(o -> o.getClass().getName()).toList());
        });
  }
}
