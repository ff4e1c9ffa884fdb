package org.mkernel.kernels.cuda;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/**
 * The step of the build that compiles the stock programs, on machines without a GPU too. What was
 * compiled before is taken from a folder, by digest.
 *
 * <p>Arguments: folder of the cache; folder that receives the entries; file that receives what each
 * kernel uses.
 */
final class CubinBuild {
  private CubinBuild() {}

  /**
   * Runs the step.
   *
   * @throws IOException when a folder can't be written
   */
  public static void main(String[] args) throws IOException {
    Path cache = Files.createDirectories(Path.of(args[0]));
    Path out = Files.createDirectories(Path.of(args[1]));
    Path report = Path.of(args[2]);
    CubinStore store = new CubinStore(List.of(), Optional.of(cache), new NvrtcWithStub(cache));
    Set<Path> current = new HashSet<>();
    List<String> lines = new ArrayList<>();
    lines.add(KernelReport.HEADER);
    for (CudaProgram program : StockKernels.all()) {
      String digest = program.digest(Nvrtc.SHIPPED);
      CubinEntry entry = store.get(program);
      Path file = out.resolve(digest);
      current.add(file);
      byte[] bytes = entry.encode();
      if (!Files.exists(file) || Files.size(file) != bytes.length) {
        Files.write(file, bytes);
      }
      entry.usage().forEach(usage -> lines.add(KernelReport.line(program, digest, entry, usage)));
    }
    try (DirectoryStream<Path> files = Files.newDirectoryStream(out)) {
      for (Path file : files) {
        if (!current.contains(file)) {
          Files.delete(file);
        }
      }
    }
    Files.write(report, lines);
  }
}
