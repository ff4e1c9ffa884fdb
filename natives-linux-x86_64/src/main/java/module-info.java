/**
 * Makes the native libraries of Linux on x86-64 resolve: nothing else requires the platform modules
 * of the JavaCPP presets, so that without this module they would be missing from an image. No code
 * belongs here.
 */
module org.mkernel.natives.linux.x86_64 {
  requires org.mkernel.api;
  requires org.bytedeco.javacpp.linux.x86_64;
  requires org.bytedeco.openblas.linux.x86_64;
  requires static org.jspecify;
}
