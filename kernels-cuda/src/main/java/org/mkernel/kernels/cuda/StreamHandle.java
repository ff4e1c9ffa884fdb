package org.mkernel.kernels.cuda;

import org.bytedeco.cuda.cudart.CUstream_st;
import org.bytedeco.cuda.global.cudart;

/** A stream as the opaque address that callers pass: made once, and moved. */
final class StreamHandle extends CUstream_st {
  StreamHandle() {}

  StreamHandle(long stream) {
    address = stream;
  }

  /** Whether what is put into a stream is recorded into a graph. */
  static boolean isCapturing(CudaContext context, long stream) {
    int[] status = new int[1];
    try (CudaContext.Scope _ = context.enter()) {
      Driver.check(
          cudart.cuStreamIsCapturing(new StreamHandle(stream), status), "cuStreamIsCapturing");
    }
    return status[0] != cudart.CU_STREAM_CAPTURE_STATUS_NONE;
  }

  /** Points to another stream. Allocates nothing. */
  StreamHandle at(long stream) {
    address = stream;
    return this;
  }
}
