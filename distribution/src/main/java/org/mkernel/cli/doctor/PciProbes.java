package org.mkernel.cli.doctor;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.mkernel.cli.doctor.Finding.Evidence;

/** What stands between GPUs and adapters: PCI bridges and the IOMMU. */
final class PciProbes {
  private static final int CONFIG_BYTES = 4096;
  private static final int FIRST_EXTENDED = 0x100;
  private static final int ACCESS_CONTROL = 0x000d;

  /** Requests and completions between peers are sent up to the root. */
  private static final int REDIRECT = 0x4 | 0x8;

  private PciProbes() {}

  /** Whether devices here may talk to one another, and not just to the host. */
  private static boolean hasPeers(Machine machine) {
    int gpus = machine.gpus().size();
    return gpus > 1 || (gpus == 1 && !machine.adapters().isEmpty());
  }

  static void acs(Machine machine, Findings out) {
    if (!hasPeers(machine)) {
      out.notApplicable("no GPU with another GPU or an adapter to talk to");
      return;
    }
    List<Evidence> redirecting = new ArrayList<>();
    boolean readable = false;
    for (String device : machine.list("/sys/bus/pci/devices", ".*")) {
      if (machine.read(device + "/class").value().startsWith("0x0604")) {
        Optional<byte[]> config = machine.bytes(device + "/config", CONFIG_BYTES);
        readable |= config.isPresent() && config.get().length > FIRST_EXTENDED;
        int control = config.map(PciProbes::accessControl).orElse(0);
        if ((control & REDIRECT) != 0) {
          redirecting.add(
              new Evidence(device + "/config", "ACS control 0x%04x".formatted(control)));
        }
      }
    }
    if (!redirecting.isEmpty()) {
      out.error(
          "%d PCI bridges redirect traffic between devices".formatted(redirecting.size()),
          "what a GPU and an adapter send one another goes up to the root: it crawls or hangs",
          "turn access control services (ACS) off in the firmware, or: setpci -s BRIDGE"
              + " ECAP_ACS+6.w=0",
          redirecting.toArray(Evidence[]::new));
    } else if (readable) {
      out.ok("no PCI bridge redirects traffic between devices");
    } else {
      out.notApplicable("settings of PCI bridges are shown to root only: run as root");
    }
  }

  /** The control word of the capability, or 0: a list of capabilities that loops ends too. */
  static int accessControl(byte[] config) {
    ByteBuffer in = ByteBuffer.wrap(config).order(ByteOrder.LITTLE_ENDIAN);
    int at = FIRST_EXTENDED;
    for (int steps = 0; steps < CONFIG_BYTES / 8; steps++) {
      if (at < FIRST_EXTENDED || at + 8 > config.length) {
        return 0;
      }
      int header = in.getInt(at);
      if ((header & 0xffff) == ACCESS_CONTROL) {
        return in.getShort(at + 6) & 0xffff;
      }
      at = header >>> 20 & 0xffc;
    }
    return 0;
  }

  static void iommu(Machine machine, Findings out) {
    if (!hasPeers(machine)) {
      out.notApplicable("no GPU with another GPU or an adapter to talk to");
      return;
    }
    List<Evidence> translated = new ArrayList<>();
    Stream.concat(
            machine.gpus().stream(),
            machine.adapters().stream().map(adapter -> adapter + "/device"))
        .map(device -> machine.read(device + "/iommu_group/type"))
        .filter(type -> type.value().startsWith("DMA"))
        .forEach(type -> translated.add(type.evidence()));
    Evidence options = machine.read("/proc/cmdline").evidence();
    if (translated.isEmpty()) {
      out.ok("addresses between devices are not translated", options);
    } else {
      translated.add(options);
      out.warning(
          "the IOMMU translates addresses of %d devices".formatted(translated.size() - 1),
          "traffic between them goes through it: slower, and on some machines it hangs",
          "boot with iommu=pt, or with intel_iommu=off / amd_iommu=off",
          translated.toArray(Evidence[]::new));
    }
  }
}
