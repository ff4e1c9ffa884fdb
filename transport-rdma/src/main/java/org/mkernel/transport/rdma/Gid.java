package org.mkernel.transport.rdma;

import java.util.HexFormat;
import java.util.Optional;

/**
 * An entry of a port's table of global identifiers.
 *
 * @param index its place in the table
 * @param text 16 bytes as eight groups of four hexadecimal digits
 * @param type what the kernel calls its type: {@code RoCE v2}, {@code IB/RoCE v1}
 */
record Gid(int index, String text, String type) {
  static final int BYTES = 16;
  private static final String ROCE_V2 = "RoCE v2";
  private static final String UNSET = "0000:0000:0000:0000:0000:0000:0000:0000";

  /** Whether the entry is in use. */
  boolean isSet() {
    return !text.equals(UNSET) && bytes().isPresent();
  }

  boolean isRoceV2() {
    return type.equals(ROCE_V2);
  }

  /** Whether it is of the one link only, as {@code fe80::/10}. */
  boolean isLinkLocal() {
    return text.length() >= 4 && (Integer.parseInt(text.substring(0, 4), 16) & 0xffc0) == 0xfe80;
  }

  /** Whether it stands for an IPv4 address. */
  boolean isIpv4() {
    return text.startsWith("0000:0000:0000:0000:0000:ffff:");
  }

  /** Its bytes, or nothing when the text is none of an identifier. */
  Optional<byte[]> bytes() {
    if (!text.matches("[0-9a-f]{4}(:[0-9a-f]{4}){7}")) {
      return Optional.empty();
    }
    return Optional.of(HexFormat.of().parseHex(text.replace(":", "")));
  }

  /** As people write it: IPv4 addresses with dots. */
  String address() {
    Optional<byte[]> bytes = bytes();
    if (!isIpv4() || bytes.isEmpty()) {
      return text;
    }
    byte[] b = bytes.get();
    return "%d.%d.%d.%d".formatted(b[12] & 0xff, b[13] & 0xff, b[14] & 0xff, b[15] & 0xff);
  }

  @Override
  public String toString() {
    return "%d: %s (%s%s)".formatted(index, address(), type, isLinkLocal() ? ", link-local" : "");
  }
}
