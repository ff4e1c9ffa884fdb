/**
 * Makes the native libraries of Linux on x86-64 resolve: nothing else requires the platform modules
 * of the JavaCPP presets, so that without this module they would be missing from an image. Whoever
 * uses the service {@link org.mkernel.api.spi.Natives} gets them without an option of the launcher.
 * No code belongs here.
 */
module org.mkernel.natives.linux.x86_64 {
  requires org.mkernel.api;
  requires org.bytedeco.cuda.linux.x86_64;
  requires org.bytedeco.javacpp.linux.x86_64;
  requires org.bytedeco.openblas.linux.x86_64;
  requires static org.jspecify;

  provides org.mkernel.api.spi.Natives with
      org.mkernel.natives.linux.x86_64.LinuxNatives;
}
