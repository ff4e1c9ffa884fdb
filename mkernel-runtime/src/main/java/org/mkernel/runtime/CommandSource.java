package org.mkernel.runtime;

/** Where the proxy takes commands from: a {@link CommandFifo}. Used by one thread. */
interface CommandSource {
  /** What {@link #peek} answers when there is no command. */
  long NONE = 0;

  /** The first command, which stays; {@link #NONE} when there is none. */
  long peek();

  /** Removes the first command. */
  void advance();

  /** The transfer of a command. */
  int transfer(long command);

  /** Whether the tag of a command agrees with an epoch. */
  boolean isOf(long command, long epoch);
}
