package org.mkernel.runtime;

import org.mkernel.api.spi.ExecutionPlan;

/**
 * The FIFO as lanes see it.
 *
 * @param fifo the FIFO
 */
record ProxyCommands(CommandFifo fifo) implements ExecutionPlan.Commands {
  @Override
  public boolean offer(int transfer, long epoch) {
    return fifo.offer(Command.encode(transfer, 0, epoch));
  }
}
