package org.mkernel.kernels.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Path;
import java.util.List;
import java.util.TreeMap;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.mkernel.api.Availability;
import org.mkernel.api.DeviceException;

/** Needs no GPU: a stand-in for the driver is made where there is none. */
final class NvrtcTest {
  @TempDir static Path folder;

  private final CudaCompiler nvrtc = new NvrtcWithStub(folder);

  @BeforeEach
  void isHere() {
    assertThat(nvrtc.availability()).isInstanceOf(Availability.Available.class);
  }

  @Test
  void compilesASourceWithItsHeadersAndTellsWhatKernelsUse() {
    CubinEntry entry = nvrtc.compile(TestPrograms.scale());
    assertThat(entry.cubin()).startsWith(0x7f, 'E', 'L', 'F');
    assertThat(entry.usage())
        .singleElement()
        .satisfies(usage -> {
          assertThat(usage.name()).isEqualTo("scale");
          assertThat(usage.entry()).isTrue();
          assertThat(usage.registers()).isBetween(1, 32);
          assertThat(usage.spillStoreBytes()).isZero();
        });
  }

  @Test
  void equalProgramsGiveEqualBytes() {
    assertThat(nvrtc.compile(TestPrograms.scale()).cubin())
        .isEqualTo(nvrtc.compile(TestPrograms.scale()).cubin());
  }

  @Test
  void aWrongSourceIsAnExceptionWithTheLineThatIsWrong() {
    CudaProgram wrong =
        new CudaProgram(
            "wrong.cu", "int x;\nint y = nothing;\n", new TreeMap<>(), "sm_90a", List.of());
    assertThatThrownBy(() -> nvrtc.compile(wrong))
        .isInstanceOf(DeviceException.class)
        .hasMessageContainingAll("wrong.cu", "NVRTC_ERROR_COMPILATION", "wrong.cu(2)", "nothing");
  }

  @Test
  void aWrongOptionIsNamed() {
    assertThatThrownBy(() -> nvrtc.compile(TestPrograms.scale("--no-such-option")))
        .isInstanceOf(DeviceException.class)
        .hasMessageContaining("--no-such-option");
  }
}
