package org.mkernel.transport.rdma;

import java.util.ServiceLoader;
import org.bytedeco.javacpp.Loader;
import org.mkernel.api.Availability;
import org.mkernel.api.spi.Natives;

/** Loads libibverbs with our presets, once, and tells whether that went well. */
final class VerbsLibrary {
  /** The name of the presets' library; also written in the build and in the image's list. */
  static final String NAME = "jnimkernelverbs";

  private static final String FILE = "lib" + NAME + ".so";

  private VerbsLibrary() {}

  /** Loaded on first use, since it takes a tenth of a second. */
  private static final class Loaded {
    static final Availability RESULT = load();
  }

  static Availability availability() {
    return Loaded.RESULT;
  }

  private static Availability load() {
    // Using the service makes the natives of the platform resolve.
    long platforms =
        ServiceLoader.load(Natives.class, Verbs.class.getClassLoader()).stream().count();
    try {
      Loader.load(Verbs.class);
      return new Availability.Available("libibverbs.so.1");
    } catch (LinkageError | RuntimeException e) {
      return explain(rootCause(e), platforms);
    }
  }

  /** What to do about a library that did not load. */
  static Availability.Unavailable explain(String cause, long platforms) {
    if (cause.contains("libibverbs")) {
      return new Availability.Unavailable(
          "libibverbs does not load: " + cause,
          "install it with its drivers: apt-get install libibverbs1 ibverbs-providers");
    }
    if (cause.contains(NAME)) {
      return new Availability.Unavailable(
          "this build has no presets of libibverbs (%s): %s".formatted(FILE, cause),
          "build it where g++ and libibverbs-dev are: ./build --install, then ./build");
    }
    return new Availability.Unavailable(
        "the presets of libibverbs do not load: " + cause,
        platforms == 0
            ? "put mkernel-natives-linux-x86_64 on the module path or class path"
            : "grant native access: --enable-native-access=org.bytedeco.javacpp,org.mkernel.transport.rdma");
  }

  /** JavaCPP's own message hides why; the last cause says it. */
  private static String rootCause(Throwable e) {
    Throwable cause = e;
    while (cause.getCause() != null) {
      cause = cause.getCause();
    }
    return String.valueOf(cause.getMessage());
  }
}
