package org.mkernel.runtime.join;

import java.io.IOException;
import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Path;

/** What tells this host from others: processes with the same one can share memory. */
public final class HostIdentity {
  private HostIdentity() {}

  /**
   * The identity of this host, as far as this process can share memory: its boot and its process
   * namespace, so that containers on one host are hosts of their own.
   *
   * @return words without a line end
   */
  public static String own() {
    try {
      return "boot %s, processes %s"
          .formatted(
              Files.readString(Path.of("/proc/sys/kernel/random/boot_id")).strip(),
              Files.readSymbolicLink(Path.of("/proc/self/ns/pid")));
    } catch (IOException | UnsupportedOperationException e) {
      try {
        return "host " + InetAddress.getLocalHost().getHostName();
      } catch (IOException unknown) {
        return "process " + ProcessHandle.current().pid();
      }
    }
  }
}
