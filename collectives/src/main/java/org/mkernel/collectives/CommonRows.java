package org.mkernel.collectives;

import java.lang.ref.SoftReference;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.mkernel.api.spi.CollectiveProvider;

/**
 * A reference whose rows are the same on all ranks: each is computed for one of them and kept as
 * long as memory allows. Safe for use by several threads.
 */
final class CommonRows implements CollectiveProvider.Reference {
  private record Row(double[] values, double[] magnitudes) {}

  private final CollectiveProvider.Reference reference;
  private final Map<Long, SoftReference<Row>> rows = new ConcurrentHashMap<>();

  CommonRows(CollectiveProvider.Reference reference) {
    this.reference = reference;
  }

  @Override
  public void row(int rank, String operand, long row, double[] values, double[] magnitudes) {
    SoftReference<Row> kept = rows.get(row);
    Row known = kept == null ? null : kept.get();
    if (known == null) {
      known = new Row(new double[values.length], new double[values.length]);
      reference.row(rank, operand, row, known.values, known.magnitudes);
      rows.put(row, new SoftReference<>(known));
    }
    System.arraycopy(known.values, 0, values, 0, values.length);
    System.arraycopy(known.magnitudes, 0, magnitudes, 0, values.length);
  }

  @Override
  public double roundOff() {
    return reference.roundOff();
  }
}
