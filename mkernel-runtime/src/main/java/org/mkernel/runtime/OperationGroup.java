package org.mkernel.runtime;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;

/**
 * One operation of all ranks of a process. Memory that peers write stays until every rank has
 * closed the operation: a rank may be done while another still raises a flag in its memory.
 */
final class OperationGroup {
  private final AtomicReferenceArray<PreparedOperation> members;
  private final List<Runnable> resources = new ArrayList<>();
  private int open;

  OperationGroup(int size, int here) {
    this.members = new AtomicReferenceArray<>(size);
    this.open = here;
  }

  /** The member of a rank of this process; null before it was prepared. */
  @Nullable PreparedOperation member(int rank) {
    return members.get(rank);
  }

  void add(int rank, PreparedOperation operation) {
    members.set(rank, operation);
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
