package org.mkernel.kernels.host;

import org.mkernel.api.Activation;
import org.mkernel.api.UsageException;
import org.mkernel.api.spi.HostKernelSet;

/** A sum with bias and activation, all in fp32. */
final class HostReduce implements HostKernelSet.HostKernel {
  private final boolean bias;
  private final Reducer reducer;

  HostReduce(boolean bias, Activation activation) {
    this.bias = bias;
    this.reducer = new Reducer(new Epilogue(bias, activation));
  }

  @Override
  public void run(HostKernelSet.HostTask task) {
    task.selectOutput(0);
    long rows = task.rows();
    long columns = columns(task);
    int parts = task.parts(0);
    if (parts == 0) {
      throw new UsageException("a sum has no parts; at least 1 is needed");
    }
    reducer.begin(parts);
    for (int part = 0; part < parts; part++) {
      task.select(0, part);
      expect("a part", task, rows, columns);
      reducer.source(part, task.dtype(), task.address(), task.pitch());
    }
    if (bias) {
      task.select(1, 0);
      expect("the bias", task, 1, columns);
      reducer.bias(task.dtype(), task.address());
    }
    task.selectOutput(0);
    reducer.run(task.dtype(), task.address(), task.pitch(), rows, task.rowBytes());
  }

  private static long columns(HostKernelSet.HostTask task) {
    return task.rowBytes() / task.dtype().bytes();
  }

  /** A sum whose shapes do not fit would be wrong without a word. */
  private static void expect(String what, HostKernelSet.HostTask task, long rows, long columns) {
    if (task.rows() != rows || columns(task) != columns) {
      throw new UsageException(
          "%s of a sum is %d x %d; %d x %d is needed"
              .formatted(what, task.rows(), columns(task), rows, columns));
    }
  }
}
