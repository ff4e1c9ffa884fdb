package org.mkernel.kernels.cuda;

import org.mkernel.api.Stopwatch;

/** Two events in a stream. */
final class CudaStopwatch implements Stopwatch {
  private final CudaStream own;
  private final CudaEvent first;
  private final CudaEvent last;

  CudaStopwatch(CudaContext context, CudaStream own) {
    this.own = own;
    this.first = new CudaEvent(context);
    this.last = new CudaEvent(context);
  }

  @Override
  public void start(long stream) {
    first.record(stream == 0 ? own.address() : stream);
  }

  @Override
  public void stop(long stream) {
    last.record(stream == 0 ? own.address() : stream);
  }

  @Override
  public long nanos() {
    last.synchronize();
    return last.nanosSince(first);
  }

  @Override
  public void close() {
    try (first;
        last) {
      // Nothing to wait for: events may go while they are in a stream.
    }
  }
}
