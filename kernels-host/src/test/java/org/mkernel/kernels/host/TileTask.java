package org.mkernel.kernels.host;

import java.util.List;
import org.mkernel.api.DType;
import org.mkernel.api.spi.HostKernelSet;

/** A task made of regions, without a schedule. */
final class TileTask implements HostKernelSet.HostTask {
  private final List<List<Region>> streams;
  private final Region output;
  private Region selected;

  TileTask(List<List<Region>> streams, Region output) {
    this.streams = streams;
    this.output = output;
    this.selected = output;
  }

  /** A region with its type. */
  record Region(DType dtype, long address, long rows, long columns, long pitch) {}

  @Override
  public int parts(int stream) {
    return stream < streams.size() ? streams.get(stream).size() : 0;
  }

  @Override
  public void select(int stream, int part) {
    selected = streams.get(stream).get(part);
  }

  @Override
  public void selectOutput(int index) {
    selected = output;
  }

  @Override
  public long address() {
    return selected.address();
  }

  @Override
  public long rows() {
    return selected.rows();
  }

  @Override
  public long rowBytes() {
    return selected.columns() * selected.dtype().bytes();
  }

  @Override
  public long pitch() {
    return selected.pitch();
  }

  @Override
  public DType dtype() {
    return selected.dtype();
  }
}
