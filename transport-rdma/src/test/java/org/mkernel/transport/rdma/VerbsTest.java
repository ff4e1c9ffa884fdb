package org.mkernel.transport.rdma;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.lang.foreign.MemoryLayout;
import java.lang.foreign.StructLayout;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.mkernel.api.Availability;

/** The presets against the library and the compiler; no adapter is needed. */
final class VerbsTest {
  private static final int ENODEV = 19;
  private static final int ENOSYS = 38;

  @BeforeAll
  static void theBuildHasThePresets() {
    boolean isBuilt = VerbsTest.class.getResource("linux-x86_64/libjnimkernelverbs.so") != null;
    assumeTrue(isBuilt, "g++ or libibverbs-dev was missing: ./build --install");
    assertThat(VerbsLibrary.availability()).isInstanceOf(Availability.Available.class);
  }

  @Test
  void structsLieAsTheCompilerLaysThem() {
    List<Long> java = new ArrayList<>();
    for (StructLayout struct : Structs.ALL) {
      for (MemoryLayout member : struct.memberLayouts()) {
        java.add(Structs.offset(struct, member.name().orElseThrow()));
      }
      java.add(struct.byteSize());
    }
    List<Long> compiler = new ArrayList<>();
    for (int i = 0; Verbs.layout(i) >= 0; i++) {
      compiler.add(Verbs.layout(i));
    }
    assertThat(java).isEqualTo(compiler);
  }

  @Test
  void everyMethodIsBound() {
    List<Method> methods =
        Arrays.stream(Verbs.class.getDeclaredMethods())
            .filter(method -> Modifier.isNative(method.getModifiers()))
            .toList();
    assertThat(methods).hasSizeGreaterThan(20);
    // These need no adapter; all others are in one library with them, which has no open symbols.
    assertThat(Verbs.open("none")).isIn(-(long) ENODEV, -(long) ENOSYS);
    assertThat(Verbs.error(ENODEV)).isEqualTo("No such device");
    assertThat(Verbs.layout(-1)).isEqualTo(-1);
  }

  @Test
  void statusesHaveTheNumbersOfTheLibrary() {
    assertThat(Verbs.status(CompletionStatus.SUCCESS.ordinal())).isEqualTo("success");
    assertThat(Verbs.status(CompletionStatus.WR_FLUSH_ERR.ordinal()))
        .isEqualTo("Work Request Flushed Error");
    assertThat(Verbs.status(CompletionStatus.RETRY_EXC_ERR.ordinal()))
        .isEqualTo("transport retry counter exceeded");
    assertThat(Verbs.status(CompletionStatus.REM_ACCESS_ERR.ordinal()))
        .isEqualTo("remote access error");
    assertThat(Verbs.status(CompletionStatus.GENERAL_ERR.ordinal())).isEqualTo("general error");
    for (CompletionStatus status : CompletionStatus.values()) {
      assertThat(CompletionStatus.of(status.ordinal())).isEqualTo(status);
      assertThat(status.meaning()).isNotBlank();
      assertThat(status.remedy().isBlank()).isEqualTo(status == CompletionStatus.SUCCESS);
      assertThat(Verbs.status(status.ordinal())).isNotEqualTo("unknown");
    }
    assertThat(CompletionStatus.of(-1)).isEqualTo(CompletionStatus.GENERAL_ERR);
    assertThat(CompletionStatus.of(99)).isEqualTo(CompletionStatus.GENERAL_ERR);
  }

  @Test
  void eventsHaveTheNumbersOfTheLibrary() {
    assertThat(Verbs.eventName(DeviceEvent.CQ_ERR.ordinal())).isEqualTo("CQ error");
    assertThat(Verbs.eventName(DeviceEvent.QP_FATAL.ordinal()))
        .isEqualTo("local work queue catastrophic error");
    assertThat(Verbs.eventName(DeviceEvent.DEVICE_FATAL.ordinal()))
        .isEqualTo("local catastrophic error");
    assertThat(Verbs.eventName(DeviceEvent.PORT_ERR.ordinal())).isEqualTo("port error");
    assertThat(Verbs.eventName(DeviceEvent.GID_CHANGE.ordinal()).toLowerCase(Locale.ROOT))
        .contains("gid");
    assertThat(DeviceEvent.effectOf(99)).isEqualTo(DeviceEvent.Effect.NOTED);
  }

  @Test
  void namesTheVersionedLibraryAndOnlySymbolsThatOldOnesHave() throws Exception {
    Path library =
        Path.of(VerbsTest.class.getResource("linux-x86_64/libjnimkernelverbs.so").toURI());
    String text = new String(Files.readAllBytes(library), StandardCharsets.ISO_8859_1);
    assertThat(text).contains("libibverbs.so.1\0").contains("IBVERBS_1.1\0");
    assertThat(text).doesNotContain("IBVERBS_1.5").doesNotContain("IBVERBS_1.8");
  }

  @Test
  void saysWhyTheLibraryDoesNotLoad() {
    assertThat(
            VerbsLibrary.explain(
                    "libibverbs.so.1: cannot open shared object file: No such file or directory", 1)
                .describe())
        .contains("libibverbs.so.1: cannot open", "apt-get install libibverbs1");
    assertThat(VerbsLibrary.explain("no jnimkernelverbs in java.library.path: []", 1).describe())
        .contains("this build has no presets", "./build --install");
    assertThat(VerbsLibrary.explain("no jnijavacpp in java.library.path", 0).describe())
        .contains("mkernel-natives-linux-x86_64");
    assertThat(VerbsLibrary.explain("Illegal native access", 1).describe())
        .contains("--enable-native-access");
  }
}
