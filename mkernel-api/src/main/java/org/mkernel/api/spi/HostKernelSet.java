package org.mkernel.api.spi;

import org.mkernel.api.schedule.Kernel;

/** Bodies as Java functions. */
public interface HostKernelSet extends KernelSet {
  @Override
  default String device() {
    return "host";
  }

  /**
   * Makes the body of a kernel. One per lane: it may keep scratch memory.
   *
   * @param kernel kind and attributes
   * @return the body
   * @throws org.mkernel.api.UsageException when an attribute is bad
   */
  HostKernel kernel(Kernel kernel);

  /** The body of a kernel, used by one lane. */
  interface HostKernel extends AutoCloseable {
    /**
     * Runs one task. Allocates nothing once it is warm.
     *
     * @param task the task; valid during the call
     */
    void run(HostTask task);

    @Override
    default void close() {}
  }

  /** A task as its body sees it. */
  interface HostTask {
    /**
     * The number of parts of a stream.
     *
     * @param stream the stream
     * @return parts, 0 when there is no such stream
     */
    int parts(int stream);

    /**
     * Waits for a part and selects it: the four methods below speak of it.
     *
     * @param stream the stream
     * @param part the part
     */
    void select(int stream, int part);

    /**
     * Selects an output.
     *
     * @param output its index
     */
    void selectOutput(int output);

    /**
     * Where the selected region starts.
     *
     * @return an address
     */
    long address();

    /**
     * Its rows.
     *
     * @return at least 1
     */
    long rows();

    /**
     * Bytes of a row.
     *
     * @return at least 1
     */
    long rowBytes();

    /**
     * From a row to the next.
     *
     * @return bytes
     */
    long pitch();

    /**
     * The type of its elements.
     *
     * @return that of its buffer
     */
    org.mkernel.api.DType dtype();
  }
}
