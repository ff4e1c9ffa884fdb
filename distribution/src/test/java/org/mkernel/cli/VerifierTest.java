package org.mkernel.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Map;
import org.junit.jupiter.api.Test;
import org.mkernel.api.DType;
import org.mkernel.api.spi.OperandSpec;
import org.mkernel.api.spi.Problem;

/** What counts as wrong. */
final class VerifierTest {
  private static final int M = 12;
  private static final int N = 7;

  /** Checks an output that is right but for one element, to which something is added. */
  private static Verifier check(DType dtype, Map<String, String> options, double added) {
    Problem problem = TestInputs.problem(1, dtype, M, N, 40, options);
    try (InputData inputs = TestInputs.of(problem, 1, Map.of())) {
      OperandSpec output = OperatorRun.written(TestInputs.GEMM.operands(problem));
      HostTensor tensor = new HostTensor(MatrixTensor.of(dtype, M, N));
      var reference = TestInputs.GEMM.reference(problem, inputs);
      for (int row = 0; row < M; row++) {
        double[] values = new double[N];
        reference.row(0, output.name(), row, values, new double[N]);
        for (int column = 0; column < N; column++) {
          tensor.put(row, column, values[column] + (row == 5 && column == 3 ? added : 0));
        }
      }
      tensor.flush();
      Verifier verifier = new Verifier(problem, TestInputs.GEMM, inputs);
      verifier.check(0, output, tensor);
      return verifier;
    }
  }

  @Test
  void whatIsRightIsRight() {
    for (DType dtype : DType.values()) {
      Verifier verifier = check(dtype, Map.of(), 0);
      assertThat(verifier.isExact()).isTrue();
      assertThat(verifier.wrong()).isZero();
      assertThat(verifier.elements()).isEqualTo(M * N);
      assertThat(verifier.maxError()).isZero();
    }
  }

  @Test
  void whereSumsAreExactAnyOtherBitIsWrong() {
    Verifier verifier = check(DType.F32, Map.of("epilogue", "relu"), 0x1p-16);
    assertThat(verifier.isExact()).isTrue();
    assertThat(verifier.wrong()).isEqualTo(1);
    assertThat(verifier.maxError()).isPositive().isLessThan(1e-4);
  }

  @Test
  void elsewhereRoundingIsAllowedAndNoMore() {
    Map<String, String> gelu = Map.of("epilogue", "gelu");
    assertThat(check(DType.F32, gelu, 0).isExact()).isFalse();
    assertThat(check(DType.F32, gelu, 0).wrong()).isZero();
    assertThat(check(DType.F32, gelu, 1e-7).wrong()).isZero();
    assertThat(check(DType.F32, gelu, 0.5).wrong()).isEqualTo(1);
    assertThat(check(DType.BF16, gelu, 0).wrong()).isZero();
  }

  @Test
  void notANumberIsNeverRight() {
    for (String epilogue : new String[] {"none", "gelu"}) {
      Verifier verifier = check(DType.F16, Map.of("epilogue", epilogue), Double.NaN);
      assertThat(verifier.wrong()).isEqualTo(1);
      assertThat(verifier.maxError()).isInfinite();
    }
  }
}
