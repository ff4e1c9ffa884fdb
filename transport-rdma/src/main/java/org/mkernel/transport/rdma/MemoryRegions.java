package org.mkernel.transport.rdma;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.mkernel.api.spi.Span;
import org.mkernel.api.spi.Transfer;

/** The memory of one operation that the adapter may use: spans for peers, sources for itself. */
final class MemoryRegions implements AutoCloseable {
  /** Sources less than this apart share a page, so that what lies between is there too. */
  private static final long PAGE = 4096;

  private record Region(long address, long bytes, long handle) {
    boolean holds(long first, long size) {
      return first >= address && first + size <= address + bytes;
    }
  }

  private final long domain;
  private final List<Region> regions = new ArrayList<>();
  private final List<Offer.Memory> offered = new ArrayList<>();

  /**
   * Registers spans.
   *
   * @param domain protection domain
   * @param spans what peers may write
   */
  MemoryRegions(long domain, List<Span> spans) {
    this.domain = domain;
    try {
      for (Span span : spans) {
        int key = 0;
        if (span.bytes() > 0) {
          key = Verbs.remoteKey(register(span.address(), span.bytes(), true).handle());
        }
        offered.add(new Offer.Memory(span.address(), span.bytes(), key));
      }
    } catch (RuntimeException e) {
      close();
      throw e;
    }
  }

  private Region register(long address, long bytes, boolean writable) {
    long handle =
        NativeCall.check(
            Verbs.register(domain, address, bytes, writable ? 1 : 0),
            "registering %d bytes at 0x%x".formatted(bytes, address));
    Region region = new Region(address, bytes, handle);
    regions.add(region);
    return region;
  }

  /** The spans as peers see them. */
  List<Offer.Memory> offered() {
    return List.copyOf(offered);
  }

  /** Registers what transfers read and no span holds, in as few regions as there are. */
  void registerSources(List<Transfer> transfers) {
    for (Span span : merge(transfers.stream().filter(t -> !TransferCheck.isEmpty(t)).toList())) {
      if (regions.stream().noneMatch(r -> r.holds(span.address(), span.bytes()))) {
        register(span.address(), span.bytes(), false);
      }
    }
  }

  /** The bytes that transfers read; those that touch are one. */
  static List<Span> merge(List<Transfer> transfers) {
    List<Span> merged = new ArrayList<>();
    List<Span> all =
        transfers.stream()
            .map(t -> new Span(t.source(), sourceBytes(t)))
            .sorted(Comparator.comparingLong(Span::address))
            .toList();
    for (Span next : all) {
      Span last = merged.isEmpty() ? next : merged.removeLast();
      long end = last.address() + last.bytes();
      if (next.address() / PAGE <= end / PAGE) {
        long newEnd = Math.max(end, next.address() + next.bytes());
        merged.add(new Span(last.address(), newEnd - last.address()));
      } else {
        merged.add(last);
        merged.add(next);
      }
    }
    return merged;
  }

  static long sourceBytes(Transfer t) {
    return (t.rows() - 1) * t.sourcePitch() + t.rowBytes();
  }

  /** The key for the source of a transfer. */
  int keyOf(Transfer t) {
    long bytes = sourceBytes(t);
    return regions.stream()
        .filter(region -> region.holds(t.source(), bytes))
        .findFirst()
        .map(region -> Verbs.localKey(region.handle()))
        .orElseThrow();
  }

  @Override
  public void close() {
    while (!regions.isEmpty()) {
      Region region = regions.removeLast();
      NativeCall.check(
          Verbs.deregister(region.handle()),
          "ending the registration of %d bytes".formatted(region.bytes()));
    }
  }
}
