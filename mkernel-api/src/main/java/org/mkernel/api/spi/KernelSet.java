package org.mkernel.api.spi;

/** Bodies of compute tasks for one kind of device. */
public interface KernelSet {
  /**
   * The kind of device.
   *
   * @return {@code host}, {@code cuda}, …
   */
  String device();

  /**
   * Whether it has a body.
   *
   * @param kind the kind of a {@link org.mkernel.api.schedule.Kernel}
   * @return true when it does
   */
  boolean supports(String kind);
}
