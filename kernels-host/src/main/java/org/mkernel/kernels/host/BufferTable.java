package org.mkernel.kernels.host;

import java.util.List;
import org.mkernel.api.DType;
import org.mkernel.api.schedule.BufferSpec;
import org.mkernel.api.spi.ExecutionPlan;

/** Where buffers lie, in arrays, for lanes. */
final class BufferTable {
  private final long[][] base;
  private final long[] slotBytes;
  private final int[] depth;
  private final DType[] dtype;

  BufferTable(ExecutionPlan plan) {
    List<BufferSpec> buffers = plan.schedule().buffers();
    int ranks = plan.schedule().topology().size();
    base = new long[ranks][buffers.size()];
    slotBytes = new long[buffers.size()];
    depth = new int[buffers.size()];
    dtype = new DType[buffers.size()];
    for (BufferSpec buffer : buffers) {
      int b = buffer.index();
      slotBytes[b] = plan.slotBytes(b);
      depth[b] = buffer.depth();
      dtype[b] = buffer.dtype();
      for (int rank = 0; rank < ranks; rank++) {
        base[rank][b] = plan.buffer(rank, b);
      }
    }
  }

  long address(int rank, int buffer, long epoch) {
    return base[rank][buffer] + epoch % depth[buffer] * slotBytes[buffer];
  }

  DType dtype(int buffer) {
    return dtype[buffer];
  }
}
