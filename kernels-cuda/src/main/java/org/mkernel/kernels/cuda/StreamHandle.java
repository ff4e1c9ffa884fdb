package org.mkernel.kernels.cuda;

import org.bytedeco.cuda.cudart.CUstream_st;

/** A stream as the opaque address that callers pass: made once, and moved. */
final class StreamHandle extends CUstream_st {
  StreamHandle() {}

  StreamHandle(long stream) {
    address = stream;
  }

  /** Points to another stream. Allocates nothing. */
  StreamHandle at(long stream) {
    address = stream;
    return this;
  }
}
