package org.mkernel.natives.linux.x86_64;

import org.mkernel.api.spi.Natives;

/** The native libraries of Linux on x86-64. */
public final class LinuxNatives implements Natives {
  /** For the service loader. */
  public LinuxNatives() {}

  @Override
  public String platform() {
    return "linux-x86_64";
  }
}
