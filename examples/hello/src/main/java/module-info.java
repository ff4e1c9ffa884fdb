/** An embedder. It requires the typed operations; runtime, device and natives are found as services. */
module org.example.hello {
  requires org.mkernel.collectives;
}
