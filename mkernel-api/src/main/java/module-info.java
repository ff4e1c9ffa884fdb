/**
 * The API of mkernel: what embedders call ({@link org.mkernel.api}), the model of a schedule
 * ({@link org.mkernel.api.schedule}) and what plug-ins implement ({@link org.mkernel.api.spi}). It
 * requires the base module only, and knows no device, no network and no implementation.
 */
module org.mkernel.api {
  requires static org.jspecify;

  exports org.mkernel.api;
  exports org.mkernel.api.schedule;
  exports org.mkernel.api.spi;

  uses org.mkernel.api.spi.RuntimeProvider;
}
