package org.mkernel.transport.tcp;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** What the operations of a rank expect, by the number of their channel. */
final class Inbox {
  private volatile Map<Integer, Table> tables = Map.of();
  private volatile int opened;

  /** What one operation expects. */
  static final class Table {
    private final int number;
    private final List<Map<Integer, Incoming>> byPeer;
    private volatile boolean closed;

    Table(int number, List<Map<Integer, Incoming>> byPeer) {
      this.number = number;
      this.byPeer = byPeer;
    }

    @Nullable Incoming incoming(int peer, int transfer) {
      return byPeer.get(peer).get(transfer);
    }

    boolean isClosed() {
      return closed;
    }
  }

  synchronized void open(Table table) {
    Map<Integer, Table> changed = new HashMap<>(tables);
    changed.put(table.number, table);
    tables = Map.copyOf(changed);
    opened = Math.max(opened, table.number);
  }

  /** From now on frames for it are read away; a read that runs now may still fill its memory. */
  synchronized void close(Table table) {
    table.closed = true;
    Map<Integer, Table> changed = new HashMap<>(tables);
    changed.remove(table.number);
    tables = Map.copyOf(changed);
  }

  @Nullable Table table(int channel) {
    return tables.get(channel);
  }

  boolean wasOpened(int channel) {
    return channel >= 1 && channel <= opened;
  }
}
