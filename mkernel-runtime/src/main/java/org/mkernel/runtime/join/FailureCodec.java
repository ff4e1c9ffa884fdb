package org.mkernel.runtime.join;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import org.mkernel.api.ClosedException;
import org.mkernel.api.DeadlineExceededException;
import org.mkernel.api.DeviceException;
import org.mkernel.api.Failure;
import org.mkernel.api.MKernelException;
import org.mkernel.api.MismatchException;
import org.mkernel.api.PeerLostException;
import org.mkernel.api.UnavailableException;
import org.mkernel.api.UsageException;

/** An exception as bytes: its kind, its message and its parts, but no stack and no cause. */
final class FailureCodec {
  private static final int MAX_TEXT = 8000;

  private enum Kind {
    USAGE,
    UNAVAILABLE,
    MISMATCH,
    PEER_LOST,
    DEADLINE_EXCEEDED,
    DEVICE,
    CLOSED;

    static Kind of(MKernelException e) {
      return switch (e) {
        case UsageException _ -> USAGE;
        case UnavailableException _ -> UNAVAILABLE;
        case MismatchException _ -> MISMATCH;
        case DeadlineExceededException _ -> DEADLINE_EXCEEDED;
        case DeviceException _ -> DEVICE;
        case ClosedException _ -> CLOSED;
        default -> PEER_LOST;
      };
    }

    MKernelException make(String message, Failure failure) {
      return switch (this) {
        case USAGE -> new UsageException(message, failure);
        case UNAVAILABLE -> new UnavailableException(message, failure);
        case MISMATCH -> new MismatchException(message, failure);
        case PEER_LOST -> new PeerLostException(message, failure);
        case DEADLINE_EXCEEDED -> new DeadlineExceededException(message, failure);
        case DEVICE -> new DeviceException(message, failure);
        case CLOSED -> new ClosedException(message, failure);
      };
    }
  }

  private FailureCodec() {}

  static byte[] encode(MKernelException e) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (DataOutputStream out = new DataOutputStream(bytes)) {
      Failure f = e.failure();
      out.writeByte(Kind.of(e).ordinal());
      out.writeUTF(cut(String.valueOf(e.getMessage())));
      out.writeInt(f.rank().orElse(-1));
      out.writeInt(f.peer().orElse(-1));
      out.writeUTF(cut(f.operation().orElse("")));
      out.writeUTF(cut(f.task().orElse("")));
      out.writeBoolean(f.nativeCode().isPresent());
      out.writeLong(f.nativeCode().orElse(0));
      out.writeUTF(cut(f.remedy().orElse("")));
    } catch (IOException impossible) {
      throw new UncheckedIOException("memory can't be written to", impossible);
    }
    return bytes.toByteArray();
  }

  static MKernelException decode(byte[] bytes) throws ProtocolException {
    try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes))) {
      int kind = in.readUnsignedByte();
      if (kind >= Kind.values().length) {
        throw new ProtocolException("a failure of kind %d".formatted(kind));
      }
      String message = in.readUTF();
      OptionalInt rank = rank(in.readInt());
      OptionalInt peer = rank(in.readInt());
      Optional<String> operation = text(in.readUTF());
      Optional<String> task = text(in.readUTF());
      boolean hasCode = in.readBoolean();
      long code = in.readLong();
      return Kind.values()[kind].make(
          message,
          new Failure(
              rank,
              peer,
              operation,
              task,
              hasCode ? OptionalLong.of(code) : OptionalLong.empty(),
              text(in.readUTF())));
    } catch (ProtocolException e) {
      throw e;
    } catch (IOException e) {
      throw new ProtocolException("a failure of %d bytes".formatted(bytes.length));
    }
  }

  private static OptionalInt rank(int rank) {
    return rank < 0 ? OptionalInt.empty() : OptionalInt.of(rank);
  }

  private static Optional<String> text(String text) {
    return text.isEmpty() ? Optional.empty() : Optional.of(text);
  }

  private static String cut(String text) {
    return text.length() <= MAX_TEXT ? text : text.substring(0, MAX_TEXT) + " …";
  }
}
