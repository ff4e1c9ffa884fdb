/** Compares a fused operation with OpenBLAS doing the same products alone. */
module org.mkernel.benchmarks.fused {
  requires org.mkernel.api;
  requires org.mkernel.collectives;
  requires org.bytedeco.javacpp;
  requires org.bytedeco.openblas;
}
