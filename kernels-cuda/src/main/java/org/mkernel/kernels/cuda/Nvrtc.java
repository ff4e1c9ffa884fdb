package org.mkernel.kernels.cuda;

import java.nio.charset.StandardCharsets;
import java.util.List;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.cuda.global.nvrtc;
import org.bytedeco.cuda.nvrtc._nvrtcProgram;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.PointerPointer;
import org.bytedeco.javacpp.SizeTPointer;
import org.mkernel.api.Availability;
import org.mkernel.api.DeviceException;
import org.mkernel.api.Failure;

/** NVIDIA's compiler at run time. It needs no toolkit: its sources include nothing but our own. */
final class Nvrtc implements CudaCompiler {
  /** The version that what is shipped was compiled with. */
  static final int SHIPPED = cudart.CUDA_VERSION;

  @Override
  public Availability availability() {
    return Library.AVAILABILITY;
  }

  @Override
  public int version() {
    return Library.VERSION[0] * 1000 + Library.VERSION[1] * 10;
  }

  @Override
  public CubinEntry compile(CudaProgram program) {
    List<String> names = List.copyOf(program.headers().keySet());
    List<String> texts = List.copyOf(program.headers().values());
    List<String> arguments = program.arguments();
    try (BytePointer source = text(program.source());
        BytePointer name = text(program.name());
        PointerPointer<BytePointer> headerTexts = array(texts);
        PointerPointer<BytePointer> headerNames = array(names);
        PointerPointer<BytePointer> options = array(arguments);
        _nvrtcProgram handle = new _nvrtcProgram()) {
      check(
          nvrtc.nvrtcCreateProgram(handle, source, name, names.size(), headerTexts, headerNames),
          "nvrtcCreateProgram",
          program,
          "");
      try {
        int code = nvrtc.nvrtcCompileProgram(handle, arguments.size(), options);
        String log = log(handle, program);
        check(code, "nvrtcCompileProgram", program, log);
        return new CubinEntry(log, cubin(handle, program));
      } finally {
        int _ = nvrtc.nvrtcDestroyProgram(handle);
      }
    }
  }

  private static BytePointer text(String text) {
    return new BytePointer(text, StandardCharsets.UTF_8);
  }

  private static PointerPointer<BytePointer> array(List<String> texts) {
    return new PointerPointer<>(texts.stream().map(Nvrtc::text).toArray(BytePointer[]::new));
  }

  private static String log(_nvrtcProgram handle, CudaProgram program) {
    try (SizeTPointer size = new SizeTPointer(1)) {
      check(nvrtc.nvrtcGetProgramLogSize(handle, size), "nvrtcGetProgramLogSize", program, "");
      byte[] log = new byte[Math.toIntExact(size.get())];
      check(nvrtc.nvrtcGetProgramLog(handle, log), "nvrtcGetProgramLog", program, "");
      return new String(log, StandardCharsets.UTF_8).replace("\0", "").strip();
    }
  }

  private static byte[] cubin(_nvrtcProgram handle, CudaProgram program) {
    try (SizeTPointer size = new SizeTPointer(1)) {
      check(nvrtc.nvrtcGetCUBINSize(handle, size), "nvrtcGetCUBINSize", program, "");
      byte[] cubin = new byte[Math.toIntExact(size.get())];
      check(nvrtc.nvrtcGetCUBIN(handle, cubin), "nvrtcGetCUBIN", program, "");
      return cubin;
    }
  }

  private static void check(int code, String call, CudaProgram program, String log) {
    if (code != nvrtc.NVRTC_SUCCESS) {
      throw new DeviceException(
          "%s of %s failed: %s (%d)%s"
              .formatted(
                  call,
                  program.describe(),
                  nvrtc.nvrtcGetErrorString(code).getString(),
                  code,
                  log.isEmpty() ? "" : "\n" + log),
          Failure.remedy("correct the source or the options that the message names")
              .withNativeCode(code));
    }
  }

  /** Loads the library once; what went wrong is kept as a value, with the root cause. */
  private static final class Library {
    static final int[] VERSION = new int[2];
    static final Availability AVAILABILITY = load();

    private Library() {}

    private static Availability load() {
      try {
        int[] major = new int[1];
        int[] minor = new int[1];
        int code = nvrtc.nvrtcVersion(major, minor);
        if (code != nvrtc.NVRTC_SUCCESS) {
          return new Availability.Unavailable(
              "nvrtcVersion failed with code " + code, "install the libnvrtc of CUDA 13");
        }
        VERSION[0] = major[0];
        VERSION[1] = minor[0];
        return new Availability.Available("NVRTC %d.%d".formatted(major[0], minor[0]));
      } catch (LinkageError | RuntimeException e) {
        return new Availability.Unavailable(
            "NVRTC can't be loaded: " + RootCause.of(e),
            "install the libnvrtc of CUDA 13, or put org.bytedeco:cuda-redist with classifier"
                + " linux-x86_64 on the module path or class path");
      }
    }
  }
}
