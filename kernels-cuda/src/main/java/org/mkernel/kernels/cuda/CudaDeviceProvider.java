package org.mkernel.kernels.cuda;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadFactory;
import org.bytedeco.cuda.global.cudart;
import org.mkernel.api.Availability;
import org.mkernel.api.DeviceException;
import org.mkernel.api.Failure;
import org.mkernel.api.UnavailableException;
import org.mkernel.api.spi.Device;
import org.mkernel.api.spi.DeviceProvider;

/** GPUs of architecture 9.0 as devices. Ranks of a node share them when there are too few. */
public final class CudaDeviceProvider implements DeviceProvider {
  /** For {@link java.util.ServiceLoader}. */
  public CudaDeviceProvider() {}

  @Override
  public String name() {
    return CudaDevice.KIND;
  }

  /** Below the host: it is chosen by name, because it does not run every schedule yet. */
  @Override
  public int preference() {
    return -1;
  }

  @Override
  public Availability availability() {
    return Gpus.FOUND.availability();
  }

  @Override
  public Device open(int localIndex, ThreadFactory threads) {
    Gpus gpus = Gpus.FOUND;
    if (gpus.availability() instanceof Availability.Unavailable missing) {
      throw new UnavailableException(
          "no GPU can be used: " + missing.reason(), Failure.remedy(missing.remedy()));
    }
    return new CudaDevice(gpus.fit().get(localIndex % gpus.fit().size()));
  }

  /**
   * What was found, once.
   *
   * @param availability whether there is one that fits
   * @param fit the numbers of those that fit
   */
  private record Gpus(Availability availability, List<Integer> fit) {
    static final Gpus FOUND = find();

    private static Gpus find() {
      if (!(Driver.availability() instanceof Availability.Available driver)) {
        return new Gpus(Driver.availability(), List.of());
      }
      try {
        return find(driver);
      } catch (DeviceException e) {
        return new Gpus(
            new Availability.Unavailable(
                String.valueOf(e.getMessage()), e.failure().remedy().orElse("see nvidia-smi")),
            List.of());
      }
    }

    private static Gpus find(Availability.Available driver) {
      int[] count = new int[1];
      Driver.check(cudart.cuDeviceGetCount(count), "cuDeviceGetCount");
      List<Integer> fit = new ArrayList<>();
      List<String> words = new ArrayList<>();
      for (int ordinal = 0; ordinal < count[0]; ordinal++) {
        int major =
            CudaContext.attribute(ordinal, cudart.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
        int minor =
            CudaContext.attribute(ordinal, cudart.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
        words.add("%s (%d.%d)".formatted(CudaContext.name(ordinal), major, minor));
        if (major == 9 && minor == 0) {
          fit.add(ordinal);
        }
      }
      if (count[0] == 0) {
        return new Gpus(
            new Availability.Unavailable(
                "the driver shows no GPU",
                "look whether nvidia-smi lists one, and whether CUDA_VISIBLE_DEVICES hides it"),
            fit);
      }
      String all = String.join(", ", words);
      return new Gpus(
          fit.isEmpty()
              ? new Availability.Unavailable(
                  "no GPU has compute capability 9.0; found are " + all,
                  "run on an H100, H200 or GH200, or use the device host")
              : new Availability.Available(all + ", " + driver.detail()),
          List.copyOf(fit));
    }
  }
}
