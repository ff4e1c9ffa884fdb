package org.mkernel.kernels.host;

import java.nio.ByteBuffer;
import java.security.SecureRandom;
import org.mkernel.api.Availability;
import org.mkernel.api.Failure;
import org.mkernel.api.MismatchException;
import org.mkernel.api.UnavailableException;
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

  /**
   * A handle is magic, version, process, what tells it from a process of another container that has
   * the same number, address and size.
   */
  private static final class SharedMemoryPort implements MappedPort {
    private static final int MAGIC = 0x6d6b736d;
    private static final int VERSION = 1;
    private static final int BYTES = 2 * Integer.BYTES + 4 * Long.BYTES;
    private static final long PROCESS = ProcessHandle.current().pid();
    private static final long NONCE = new SecureRandom().nextLong();

    @Override
    public byte[] export(long address, long bytes) {
      return ByteBuffer.allocate(BYTES)
          .putInt(MAGIC)
          .putInt(VERSION)
          .putLong(PROCESS)
          .putLong(NONCE)
          .putLong(address)
          .putLong(bytes)
          .array();
    }

    @Override
    public long map(int peer, byte[] handle) {
      ByteBuffer in = ByteBuffer.wrap(handle);
      if (handle.length != BYTES || in.getInt() != MAGIC || in.getInt() != VERSION) {
        throw new MismatchException(
            "rank %d sent a memory handle of %d bytes that version %d can't read"
                .formatted(peer, handle.length, VERSION),
            Failure.remedy("run the same version of mkernel everywhere").withPeer(peer));
      }
      long process = in.getLong();
      long nonce = in.getLong();
      if (process != PROCESS || nonce != NONCE) {
        throw new UnavailableException(
            "rank %d is in process %d; this version maps memory within one process only"
                .formatted(peer, process),
            Failure.remedy("put all ranks of a node into one process").withPeer(peer));
      }
      return in.getLong();
    }

    @Override
    public void close() {}
  }
}
