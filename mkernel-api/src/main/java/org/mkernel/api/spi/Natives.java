package org.mkernel.api.spi;

/**
 * Marks a module that brings native libraries. It has no function but to be a service: a module
 * that uses it makes the natives of the platform resolve without any option of the launcher.
 */
public interface Natives {
  /**
   * What the libraries are for.
   *
   * @return operating system and architecture, as {@code linux-x86_64}
   */
  String platform();
}
