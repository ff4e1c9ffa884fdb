/**
 * Joining, plug-in layers, selection, preparation and launch, command FIFO, proxy and emulated
 * wire. Embedders reach all of it through {@code org.mkernel.api}; nothing here is exported.
 */
@NullMarked
package org.mkernel.runtime;

import org.jspecify.annotations.NullMarked;
