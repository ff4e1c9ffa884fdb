package org.mkernel.kernels.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import org.junit.jupiter.api.Test;
import org.mkernel.api.Availability;
import org.mkernel.api.UnavailableException;

final class CudaDeviceProviderTest {
  private final CudaDeviceProvider provider = new CudaDeviceProvider();

  @Test
  void saysWhyThereIsNoGpuAndWhatHelps() {
    assumeFalse(provider.availability().isAvailable(), "there is a GPU");
    assertThat(provider.availability())
        .isInstanceOfSatisfying(
            Availability.Unavailable.class,
            missing -> {
              assertThat(missing.reason()).isNotBlank();
              assertThat(missing.remedy()).isNotBlank();
            });
  }

  @Test
  void opensNothingWhereThereIsNoGpu() {
    assumeFalse(provider.availability().isAvailable(), "there is a GPU");
    assertThatThrownBy(() -> provider.open(0, Thread::new))
        .isInstanceOfSatisfying(
            UnavailableException.class, e -> assertThat(e.failure().remedy()).isPresent())
        .hasMessageContaining("no GPU can be used");
  }
}
