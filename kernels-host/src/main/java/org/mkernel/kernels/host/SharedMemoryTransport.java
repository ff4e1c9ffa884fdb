package org.mkernel.kernels.host;

import java.util.OptionalInt;
import org.mkernel.api.Availability;
import org.mkernel.api.spi.MappedPort;
import org.mkernel.api.spi.Port;
import org.mkernel.api.spi.TransportProvider;

/** Ranks of one process reach each other by load and store. */
public final class SharedMemoryTransport implements TransportProvider {
  /** For {@link java.util.ServiceLoader}. */
  public SharedMemoryTransport() {}

  @Override
  public String name() {
    return "shared-memory";
  }

  @Override
  public Reach reach() {
    return Reach.NODE;
  }

  @Override
  public int cost() {
    return 100;
  }

  @Override
  public Availability availability() {
    return new Availability.Available("ranks of one process");
  }

  @Override
  public Port open(Context context) {
    return new SharedMemoryPort();
  }

  private static final class SharedMemoryPort implements MappedPort {
    @Override
    public byte[] export(long address, long bytes) {
      return new MemoryHandle(address, bytes).encode();
    }

    @Override
    public long map(int peer, byte[] handle) {
      return MemoryHandle.decode(OptionalInt.of(peer), handle).address();
    }

    @Override
    public void close() {}
  }
}
