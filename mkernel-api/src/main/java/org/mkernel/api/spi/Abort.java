package org.mkernel.api.spi;

import java.util.Optional;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import org.mkernel.api.MKernelException;

/** The abort word of a world in one process: once set it stays, and the first cause stands. */
public final class Abort {
  private final AtomicReference<@Nullable MKernelException> cause = new AtomicReference<>();

  /** Makes one that is not set. */
  public Abort() {}

  /**
   * Whether the world is dead. Every loop that waits asks this.
   *
   * @return true once {@link #set} was called
   */
  public boolean isSet() {
    return cause.get() != null;
  }

  /**
   * Ends the world.
   *
   * @param failure why
   * @return whether this call was the first
   */
  public boolean set(MKernelException failure) {
    return cause.compareAndSet(null, failure);
  }

  /**
   * Why the world is dead.
   *
   * @return the first cause
   */
  public Optional<MKernelException> cause() {
    return Optional.ofNullable(cause.get());
  }
}
