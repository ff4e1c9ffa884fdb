package org.mkernel.api.spi;

import java.lang.foreign.MemorySegment;
import java.util.Map;
import java.util.Optional;
import org.mkernel.api.Stopwatch;

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
   * As {@link #allocate}, for memory that other processes of this node will map.
   *
   * @param bytes the size, at least 0
   * @param alignment a power of two up to 4096
   * @return the memory; closed by its owner
   * @throws org.mkernel.api.DeviceException when there is not enough
   */
  default Memory allocateShared(long bytes, long alignment) {
    return allocate(bytes, alignment);
  }

  /**
   * Allocates zeroed memory of the host that the device follows too: for words that both sides read
   * and write while a launch is in flight, such as the queue of commands.
   *
   * @param bytes the size, at least 1
   * @param alignment a power of two up to 4096
   * @return the memory; closed by its owner
   * @throws org.mkernel.api.DeviceException when there is not enough
   */
  Pinned pinned(long bytes, long alignment);

  /**
   * Whether the host may follow addresses of this device. Where it may not, {@link #read}, {@link
   * #write} and {@link #copyQueue} are the only ways to what {@link #allocate} gives.
   *
   * @return true for host memory
   */
  boolean hostAccessible();

  /**
   * Copies from the device to the host. Returns when it is done; does not wait for launches.
   *
   * @param address where to read
   * @param to where to write; its size says how many bytes
   * @throws org.mkernel.api.DeviceException when the device fails
   */
  void read(long address, MemorySegment to);

  /**
   * Copies from the host to the device. Returns when it is done; does not wait for launches.
   *
   * @param from what to read; its size says how many bytes
   * @param address where to write
   * @throws org.mkernel.api.DeviceException when the device fails
   */
  void write(MemorySegment from, long address);

  /**
   * Opens a queue of copies that goes on beside launches.
   *
   * @return the queue; closed by its owner
   */
  CopyQueue copyQueue();

  /**
   * Opens a stopwatch.
   *
   * @return it, to be closed by its owner; empty when the device has no streams that tell time
   */
  default Optional<Stopwatch> stopwatch() {
    return Optional.empty();
  }

  /**
   * Makes memory of the device reachable for other ranks of this node.
   *
   * @param address a place in memory of the device
   * @param bytes how many bytes from there, at least 1, all of one allocation
   * @return a handle for {@link #map}; valid until the memory is freed
   * @throws org.mkernel.api.UnavailableException when the device can't export it
   */
  byte[] export(long address, long bytes);

  /**
   * Maps memory that another rank of this node exported.
   *
   * @param handle what {@link #export} gave there
   * @return the memory, from the address that was exported; closing it ends the mapping
   * @throws org.mkernel.api.MismatchException when it is no handle of this version
   * @throws org.mkernel.api.UnavailableException when the device can't reach that memory
   */
  Memory map(byte[] handle);

  /**
   * How many lanes each role of a schedule gets where nothing else was asked.
   *
   * @param plan what will be prepared
   * @param role the index of the role
   * @return at least 1
   */
  int defaultLanes(org.mkernel.api.schedule.RankSchedule plan, int role);

  /**
   * What planners should do for this device where the caller did not say: options by name, of which
   * an operator takes those that it has.
   *
   * @return for example the largest tile
   */
  default Map<String, String> tuning() {
    return Map.of();
  }

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

  /** Memory of the host that a device follows too. */
  interface Pinned extends Memory {
    /**
     * Where it starts for the device.
     *
     * @return the address
     */
    @Override
    long address();

    /**
     * Where it starts for the host.
     *
     * @return the address
     */
    long hostAddress();
  }

  /**
   * Copies and stores, done in the order in which they are put in. Used by one thread at a time.
   */
  interface CopyQueue extends AutoCloseable {
    /**
     * Puts a copy in; returns at once. Neither side may change before it is done.
     *
     * @param from an address of the device, of pinned memory or of the host
     * @param to likewise
     * @param bytes how many
     */
    void copy(long from, long to, long bytes);

    /**
     * Puts a store of 8 bytes in, little endian: who sees the value sees all copies before it.
     *
     * @param address an address of the device or of pinned memory, a multiple of 8
     * @param value what to store
     */
    void store(long address, long value);

    /**
     * Whether all that was put in is done.
     *
     * @return true when sources may be reused
     * @throws org.mkernel.api.DeviceException when something failed
     */
    boolean isIdle();

    /** Waits until all that was put in is done. */
    @Override
    void close();
  }
}
