package org.mkernel.runtime;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicReferenceArray;

/**
 * One operation of all ranks of a process. Memory that peers write stays until every rank has
 * closed the operation: a rank may be done while another still raises a flag in its memory.
 */
final class OperationGroup {
  private final AtomicReferenceArray<PreparedOperation> members;
  private final List<Runnable> resources = new ArrayList<>();
  private int open;

  OperationGroup(int size) {
    this.members = new AtomicReferenceArray<>(size);
    this.open = size;
  }

  void add(int rank, PreparedOperation operation) {
    members.set(rank, operation);
  }

  /** All members that were prepared. */
  List<PreparedOperation> members() {
    List<PreparedOperation> all = new ArrayList<>();
    for (int rank = 0; rank < members.length(); rank++) {
      PreparedOperation member = members.get(rank);
      if (member != null) {
        all.add(member);
      }
    }
    return all;
  }

  /** What to free once all ranks are done, last first. */
  synchronized void own(Runnable free) {
    resources.add(free);
  }

  /** A rank no longer uses the operation. */
  void release() {
    synchronized (this) {
      if (--open > 0) {
        return;
      }
    }
    free();
  }

  /** Frees now; called when no lane and no proxy runs any more. */
  void free() {
    List<Runnable> all;
    synchronized (this) {
      all = new ArrayList<>(resources.reversed());
      resources.clear();
    }
    all.forEach(Runnable::run);
  }
}
