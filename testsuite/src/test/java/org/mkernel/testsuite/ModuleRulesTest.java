package org.mkernel.testsuite;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.classfile.AccessFlags;
import java.lang.classfile.Attributes;
import java.lang.classfile.ClassModel;
import java.lang.classfile.attribute.SignatureAttribute;
import java.lang.classfile.constantpool.ClassEntry;
import java.lang.classfile.constantpool.Utf8Entry;
import java.lang.module.ModuleDescriptor;
import java.lang.reflect.AccessFlag;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The rules between modules: who may require, export and provide what. */
final class ModuleRulesTest {
  private static final String API = "org.mkernel.api";
  private static final String RUNTIME = "org.mkernel.runtime";

  /** Modules that put others together, and so may know more than the API. */
  private static final Map<String, Set<String>> MAY_REQUIRE =
      Map.of(
          "org.mkernel.cli", Set.of(API, RUNTIME),
          "org.mkernel.testkit", Set.of(API, RUNTIME));

  static Stream<OurModule> modules() {
    return OurModule.published();
  }

  @Test
  void everyModuleOfTheReactorIsTested() throws IOException {
    List<String> declared = new ArrayList<>();
    Pattern name = Pattern.compile("^(?:open )?module ([\\w.]+) \\{", Pattern.MULTILINE);
    try (Stream<Path> folders = Files.list(Path.of(".."))) {
      for (Path folder : folders.toList()) {
        Path descriptor = folder.resolve("src/main/java/module-info.java");
        if (Files.exists(descriptor)) {
          Matcher matcher = name.matcher(Files.readString(descriptor));
          assertThat(matcher.find()).as("a module name in %s", descriptor).isTrue();
          declared.add(matcher.group(1));
        }
      }
    }
    assertThat(OurModule.all().map(OurModule::name)).containsExactlyInAnyOrderElementsOf(declared);
  }

  @Test
  void theApiRequiresJavaBaseOnly() {
    OurModule api = modules().filter(module -> module.name().equals(API)).findFirst().orElseThrow();
    assertThat(api.required()).containsExactly("java.base");
  }

  @ParameterizedTest
  @MethodSource("modules")
  void noImplementationRequiresAnother(OurModule module) {
    assertThat(module.required().filter(name -> name.startsWith("org.mkernel.")))
        .isSubsetOf(MAY_REQUIRE.getOrDefault(module.name(), Set.of(API)));
  }

  @ParameterizedTest
  @MethodSource("modules")
  void onlyTheCommandBringsALogger(OurModule module) {
    if (!module.name().equals("org.mkernel.cli")) {
      assertThat(module.required()).doesNotContain("org.apache.logging.log4j.core");
    }
  }

  @ParameterizedTest
  @MethodSource("modules")
  void noSignatureShowsJavaCppTypes(OurModule module) {
    for (ClassModel type : module.classes()) {
      if (isExported(module, type)) {
        assertThat(signatures(type))
            .as("signatures of %s", type.thisClass().asInternalName())
            .noneMatch(signature -> signature.contains("org/bytedeco/"));
      }
    }
  }

  @ParameterizedTest
  @MethodSource("modules")
  void onlyOneModuleKnowsCuda(OurModule module) {
    if (!module.name().equals("org.mkernel.kernels.cuda")) {
      for (ClassModel type : module.classes()) {
        assertThat(StreamSupport.stream(type.constantPool().spliterator(), false))
            .as("constants of %s", type.thisClass().asInternalName())
            .noneMatch(entry ->
                entry instanceof Utf8Entry text
                    && text.stringValue().contains("org/bytedeco/cuda"));
      }
    }
  }

  @ParameterizedTest
  @MethodSource("modules")
  void theClassPathFindsTheServicesOfTheModulePath(OurModule module) {
    String folder = "META-INF/services/";
    assertThat(module.files(folder))
        .containsExactlyInAnyOrderElementsOf(
            module.descriptor().provides().stream()
                .map(provides -> folder + provides.service())
                .toList());
    for (ModuleDescriptor.Provides provides : module.descriptor().provides()) {
      assertThat(module.lines(folder + provides.service()))
          .containsExactlyElementsOf(provides.providers());
    }
  }

  @ParameterizedTest
  @MethodSource("modules")
  void providersCanBeMadeOnTheClassPath(OurModule module) {
    List<ClassModel> classes = module.classes();
    for (ModuleDescriptor.Provides provides : module.descriptor().provides()) {
      for (String provider : provides.providers()) {
        ClassModel type =
            classes.stream()
                .filter(candidate -> className(candidate).equals(provider))
                .findFirst()
                .orElseThrow();
        assertThat(type.flags().has(AccessFlag.PUBLIC)).as("%s is public", provider).isTrue();
        assertThat(type.methods())
            .as("%s has a public constructor without arguments", provider)
            .anyMatch(method ->
                method.methodName().equalsString("<init>")
                    && method.methodType().equalsString("()V")
                    && method.flags().has(AccessFlag.PUBLIC));
      }
    }
  }

  @ParameterizedTest
  @MethodSource("modules")
  void everyPackageRefusesNull(OurModule module) {
    List<ClassModel> classes = module.classes();
    for (String name : module.descriptor().packages()) {
      Optional<ClassModel> info =
          classes.stream()
              .filter(type -> className(type).equals(name + ".package-info"))
              .findFirst();
      assertThat(info).as("package-info.java of %s", name).isPresent();
      assertThat(info.orElseThrow().findAttribute(Attributes.runtimeVisibleAnnotations()))
          .as("annotations of package %s", name)
          .hasValueSatisfying(annotations ->
              assertThat(annotations.annotations())
                  .anyMatch(annotation ->
                      annotation
                          .className()
                          .equalsString("Lorg/jspecify/annotations/NullMarked;")));
    }
  }

  @ParameterizedTest
  @MethodSource("modules")
  void noClassNeedsPreviewFeatures(OurModule module) {
    assertThat(module.classes()).allMatch(type -> type.minorVersion() == 0);
    assertThat(module.required()).noneMatch(name -> name.startsWith("jdk.incubator."));
  }

  /** The build checks javadoc on the packages that a POM names: these must be all exported ones. */
  @Test
  void javadocIsCheckedOnAllThatIsExported() throws IOException {
    Pattern property = Pattern.compile("<exported.packages>(.*)</exported.packages>");
    List<String> checked = new ArrayList<>();
    try (Stream<Path> folders = Files.list(Path.of(".."))) {
      for (Path folder : folders.toList()) {
        Path pom = folder.resolve("pom.xml");
        if (Files.exists(pom)) {
          Matcher matcher = property.matcher(Files.readString(pom));
          if (matcher.find()) {
            checked.addAll(Arrays.asList(matcher.group(1).split(",")));
          }
        }
      }
    }
    assertThat(checked)
        .containsAll(modules().flatMap(module -> module.exportedPackages().stream()).toList());
  }

  @Test
  void nothingIsAnAutomaticModule() {
    assertThat(ModuleRulesTest.class.getModule().getLayer().modules())
        .noneMatch(module -> module.getDescriptor().isAutomatic());
  }

  private static boolean isExported(OurModule module, ClassModel type) {
    String name = className(type);
    return isVisible(type.flags())
        && module.exportedPackages().contains(name.substring(0, name.lastIndexOf('.')));
  }

  /** What a user of the class sees: its supertypes, and the types of its members. */
  private static List<String> signatures(ClassModel type) {
    List<String> signatures = new ArrayList<>();
    type.superclass().map(ClassEntry::asInternalName).ifPresent(signatures::add);
    type.interfaces().forEach(entry -> signatures.add(entry.asInternalName()));
    type.findAttribute(Attributes.signature()).ifPresent(s -> signatures.add(text(s)));
    for (var method : type.methods()) {
      if (isVisible(method.flags())) {
        signatures.add(method.methodType().stringValue());
        method.findAttribute(Attributes.signature()).ifPresent(s -> signatures.add(text(s)));
      }
    }
    for (var field : type.fields()) {
      if (isVisible(field.flags())) {
        signatures.add(field.fieldType().stringValue());
        field.findAttribute(Attributes.signature()).ifPresent(s -> signatures.add(text(s)));
      }
    }
    return signatures;
  }

  private static boolean isVisible(AccessFlags flags) {
    return flags.has(AccessFlag.PUBLIC) || flags.has(AccessFlag.PROTECTED);
  }

  private static String text(SignatureAttribute signature) {
    return signature.signature().stringValue();
  }

  private static String className(ClassModel type) {
    return type.thisClass().asInternalName().replace('/', '.');
  }
}
