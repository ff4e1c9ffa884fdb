package org.mkernel.kernels.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/**
 * The device compiler asserts each size and offset that {@code task.cuh} lists; here the list is
 * compared with the constants of the host.
 */
final class TaskLayoutTest {
  private static final Pattern LINE =
      Pattern.compile("^(SIZE|FIELD)\\((\\w+), (?:(\\w+), )?(\\d+)\\);$", Pattern.MULTILINE);

  @Test
  void hasTheNumbersThatTheDeviceCompilerAsserts() throws Exception {
    Map<String, Integer> device = new TreeMap<>();
    Matcher matcher = LINE.matcher(source());
    while (matcher.find()) {
      String name = upper(matcher.group(2));
      if (matcher.group(1).equals("FIELD")) {
        name += "_" + upper(matcher.group(3));
      }
      device.put(name, Integer.valueOf(matcher.group(4)));
    }
    assertThat(device).hasSizeGreaterThan(50);
    Map<String, Integer> host = new TreeMap<>();
    for (Field field : TaskLayout.class.getDeclaredFields()) {
      if (device.containsKey(field.getName())) {
        host.put(field.getName(), (Integer) field.get(null));
      }
    }
    assertThat(host).isEqualTo(device);
  }

  @Test
  void knowsTheConstantsOfTheSource() throws IOException {
    assertThat(source())
        .contains("SLOT_BYTES = " + TaskLayout.SLOT)
        .contains("MAX_POOLS = " + TaskLayout.MAX_POOLS)
        .contains("MAX_ROLES = " + TaskLayout.MAX_ROLES)
        .contains(
            "GEMM = %d, COPY = %d, REDUCE = %d, NOTIFY = %d"
                .formatted(TaskLayout.GEMM, TaskLayout.COPY, TaskLayout.REDUCE, TaskLayout.NOTIFY));
  }

  private static String upper(String name) {
    return name.replaceAll("([a-z])([A-Z])", "$1_$2").toUpperCase(Locale.ROOT);
  }

  private static String source() throws IOException {
    try (InputStream in =
        Objects.requireNonNull(TaskLayout.class.getResourceAsStream("device/task.cuh"))) {
      return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    }
  }
}
