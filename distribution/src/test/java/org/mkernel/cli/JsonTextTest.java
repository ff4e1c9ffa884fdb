package org.mkernel.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;

/** JSON as it is printed. */
final class JsonTextTest {
  @Test
  void fieldsKeepTheirOrderAndTheirTypes() {
    JsonText text =
        new JsonText()
            .object(json -> {
              json.put("text", "a");
              json.put("whole", 1L << 62);
              json.put("flag", true);
              json.putNumber("number", 0.5);
              json.putNull("nothing");
              json.object("inner", inner -> inner.put("x", 1));
              json.strings("strings", List.of("p", "q"));
              json.array("objects", List.of(1, 2), (fields, i) -> fields.put("i", i));
              json.strings("empty", List.of());
            });
    assertThat(text)
        .hasToString(
            "{\"text\":\"a\",\"whole\":4611686018427387904,\"flag\":true,\"number\":0.5,"
                + "\"nothing\":null,\"inner\":{\"x\":1},\"strings\":[\"p\",\"q\"],"
                + "\"objects\":[{\"i\":1},{\"i\":2}],\"empty\":[]}");
  }

  @Test
  void textIsEscaped() {
    String odd = "quote \" back\\slash line\nend \u0000 ·";
    JsonText text = new JsonText().object(json -> json.put("odd", odd));
    assertThat(text.toString()).doesNotContain("\n");
    assertThat(Json.object(text.toString())).containsEntry("odd", odd);
  }

  @Test
  void whatJsonHasNoNumberForIsNull() {
    JsonText text =
        new JsonText()
            .object(json -> {
              json.putNumber("nan", Double.NaN);
              json.putNumber("infinite", Double.POSITIVE_INFINITY);
              json.putNumber("unknown", null);
            });
    assertThat(text).hasToString("{\"nan\":null,\"infinite\":null,\"unknown\":null}");
  }
}
