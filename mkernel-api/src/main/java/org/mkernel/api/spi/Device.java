package org.mkernel.api.spi;

/**
 * Memory and an executor. Addresses are plain numbers; who may follow them is the device's matter.
 */
public interface Device extends AutoCloseable {
  /**
   * Its kind, as of its provider.
   *
   * @return {@code host}, {@code cuda}, …
   */
  String kind();

  /**
   * Allocates zeroed memory.
   *
   * @param bytes the size, at least 0
   * @param alignment a power of two
   * @return the memory; closed by its owner
   * @throws org.mkernel.api.DeviceException when there is not enough; it says how much there is
   */
  Memory allocate(long bytes, long alignment);

  /**
   * Whether the host may follow addresses of this device.
   *
   * @return true for host memory
   */
  boolean hostAccessible();

  /**
   * How many lanes each role of a schedule gets where nothing else was asked.
   *
   * @param plan what will be prepared
   * @param role the index of the role
   * @return at least 1
   */
  int defaultLanes(org.mkernel.api.schedule.RankSchedule plan, int role);

  /**
   * Prepares a schedule: does all that can block or allocate, so that a launch does not.
   *
   * @param plan what to run
   * @return the executable
   */
  Executable prepare(ExecutionPlan plan);

  @Override
  void close();

  /** Memory of a device. */
  interface Memory extends AutoCloseable {
    /**
     * Where it starts.
     *
     * @return the address, 0 when its size is 0
     */
    long address();

    /**
     * Its size.
     *
     * @return bytes
     */
    long bytes();

    @Override
    void close();
  }
}
