package org.mkernel.api.spi;

import java.util.List;

/**
 * A port that moves bytes between hosts. The queue of commands, the proxy thread and what a device
 * does are the runtime's: a wire is told which of its prepared transfers is due.
 */
public non-sealed interface Wire extends Port {
  /**
   * Prepares the transfers of one operation. Collective: every rank of the world calls it, in the
   * same order, and it may use the exchange of its context.
   *
   * @param operation the operation, for messages
   * @param spans memory of this rank that peers may write; span 0 holds the flags
   * @param transfers what this rank will post, by number
   * @return the channel
   */
  Channel open(String operation, List<Span> spans, List<Transfer> transfers);

  /** The prepared transfers of one operation on one rank. Used by one thread, the proxy. */
  interface Channel extends AutoCloseable {
    /**
     * Posts a transfer. Must not block.
     *
     * @param transfer its number
     * @param epoch what the flag is raised to
     * @return false when the queue to that peer is full: the caller parks the command and asks
     *     again
     */
    boolean post(int transfer, long epoch);

    /**
     * Reports what has completed. Must not block.
     *
     * @param completions told of each
     * @return how many were reported
     */
    int poll(Completions completions);

    /** Stops: nothing more is posted, what is in flight ends soon, with an error or without. */
    void abort();

    @Override
    void close();
  }

  /** Hears of completions. */
  interface Completions {
    /**
     * A transfer is complete: its source may be reused.
     *
     * @param transfer its number
     */
    void completed(int transfer);

    /**
     * A transfer failed, and with it the connection.
     *
     * @param transfer its number
     * @param reason what the transport says
     * @param nativeCode its code, 0 for none
     * @param remedy what the reader can do
     */
    void failed(int transfer, String reason, long nativeCode, String remedy);
  }
}
