package org.mkernel.kernels.cuda;

/** What shipped kernels use, as lines of tab-separated values. */
final class KernelReport {
  static final String HEADER =
      String.join(
          "\t",
          "program",
          "options",
          "digest",
          "cubin bytes",
          "function",
          "kernel",
          "registers",
          "shared bytes",
          "stack bytes",
          "spill store bytes",
          "spill load bytes");

  private KernelReport() {}

  static String line(CudaProgram program, String digest, CubinEntry entry, KernelUsage usage) {
    return String.join(
        "\t",
        program.name(),
        String.join(" ", program.arguments()),
        digest,
        Integer.toString(entry.cubin().length),
        usage.name(),
        Boolean.toString(usage.entry()),
        Integer.toString(usage.registers()),
        Integer.toString(usage.sharedBytes()),
        Integer.toString(usage.stackBytes()),
        Integer.toString(usage.spillStoreBytes()),
        Integer.toString(usage.spillLoadBytes()));
  }
}
