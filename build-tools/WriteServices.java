import java.io.IOException;
import java.io.InputStream;
import java.lang.module.ModuleDescriptor;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Writes {@code META-INF/services} from the {@code provides} of a compiled module descriptor, so that
 * the class path finds the services that the module path finds. The argument is the folder of classes.
 */
final class WriteServices {
  private WriteServices() {}

  public static void main(String[] args) throws IOException {
    Path classes = Path.of(args[0]);
    ModuleDescriptor module;
    try (InputStream in = Files.newInputStream(classes.resolve("module-info.class"))) {
      module = ModuleDescriptor.read(in);
    }
    Path services = classes.resolve("META-INF/services");
    if (module.provides().isEmpty() && !Files.exists(services)) {
      return;
    }
    Files.createDirectories(services);
    try (DirectoryStream<Path> stale = Files.newDirectoryStream(services)) {
      for (Path file : stale) {
        Files.delete(file);
      }
    }
    for (ModuleDescriptor.Provides provides : module.provides()) {
      Files.write(services.resolve(provides.service()), provides.providers());
    }
  }
}
